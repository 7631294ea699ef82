// A real-time thread that commits one offence in each cycle: `allocate`, `file` or `block`.
package main

import (
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

var kept []byte
var log *os.File
var ask, answer [2]int

//go:noinline
func step(kind string, n int) {
	switch kind {
	case "allocate":
		kept = make([]byte, 1000+n%100) // allocates
	case "file":
		log.WriteAt([]byte("cycle\n"), 0) // writes
	case "block":
		var letter [1]byte
		syscall.Write(ask[1], letter[:])
		syscall.Read(answer[0], letter[:]) // waits
	}
}

// Answers so late that who asked waits, though for less than for its next cycle.
func answerLate() {
	var letter [1]byte
	for {
		syscall.Read(ask[0], letter[:])
		time.Sleep(500 * time.Microsecond)
		syscall.Write(answer[1], letter[:])
	}
}

func main() {
	kind := "allocate"
	if len(os.Args) > 1 {
		kind = os.Args[1]
	}
	log, _ = os.CreateTemp("", "offender")
	os.Remove(log.Name())
	syscall.Pipe(ask[:])
	syscall.Pipe(answer[:])
	go answerLate()
	runtime.LockOSThread()
	priority := int32(61)
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, 1,
		uintptr(unsafe.Pointer(&priority)))
	if errno != 0 {
		os.Exit(3)
	}
	for n := 0; ; n++ {
		step(kind, n)
		time.Sleep(3 * time.Millisecond)
	}
}
