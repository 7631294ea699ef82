#!/bin/sh
# A broker at a real-time priority, a subscriber, and a message every 20 ms.
chrt -f 50 mosquitto -p 1883 &
sleep 0.2
mosquitto_sub -h 127.0.0.1 -t a -C 60 &
n=0
while [ $n -lt 200 ]; do echo $n; n=$((n + 1)); sleep 0.02; done |
	mosquitto_pub -h 127.0.0.1 -t a -l
