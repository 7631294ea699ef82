#!/bin/sh
chrt -f 20 prometheus-node-exporter --web.listen-address=127.0.0.1:9100 &
sleep 0.5
while :; do curl -s http://127.0.0.1:9100/metrics | wc -c; sleep 0.1; done
