# Sends a line to a syslog port each 10 ms: PORT.
while sleep 0.01; do printf '<13>one: text' > "/dev/udp/127.0.0.1/$1"; done 2>/dev/null
