# Opens a TLS connection each 50 ms: PORT.
while sleep 0.05; do
	printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -quiet -connect "127.0.0.1:$1"
done > /dev/null 2>&1
