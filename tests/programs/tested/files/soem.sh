#!/bin/sh
# A master, and a slave at the other end of a virtual wire.
insmod "/modules/$(uname -r)/veth.ko"
ip link add wire type veth peer name slave
ip link set wire up
ip link set slave up
/slave slave dc &
exec /red_test wire none 1000
