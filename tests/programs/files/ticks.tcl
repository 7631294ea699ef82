# A loop of timers that makes and forgets strings.
proc tick {} {
	for {set i 0} {$i < 200} {incr i} { set a($i) [string repeat x $i] }
	after 4 tick
}
tick
vwait forever
