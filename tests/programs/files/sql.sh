# Asks a database each 20 ms: its directory.
while sleep 0.02; do
	psql -h "$1" -U nobody -d postgres -c 'select count(*) from pg_class'
done >/dev/null 2>&1
