# Writes a key each time that it was written: SOCKET.
while :; do redis-benchmark -q -s "$1" -c 1 -n 1000 -t set || sleep 0.1; done > /dev/null 2>&1
