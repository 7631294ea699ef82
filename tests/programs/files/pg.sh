# A database server in RUN, as the user nobody: it refuses root.
chown nobody "$1"
exec setpriv --reuid=nobody --regid=nogroup --clear-groups sh -c '
	bin=$(ls -d /usr/lib/postgresql/*/bin) && "$bin"/initdb -D "$0"/data -A trust >&2 &&
	exec "$bin"/postgres -D "$0"/data -k "$0" -c listen_addresses=' "$1"
