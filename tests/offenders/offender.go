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
var pipe [2]int

//go:noinline
func step(kind string, n int) {
	switch kind {
	case "allocate":
		kept = make([]byte, 1000+n%100) // allocates
	case "file":
		log.WriteAt([]byte("cycle\n"), 0) // writes
	case "block":
		var letter [1]byte
		syscall.Read(pipe[0], letter[:]) // waits
	}
}

// Writes so late that the reader waits.
func feed() {
	for {
		time.Sleep(2 * time.Millisecond)
		syscall.Write(pipe[1], []byte("!"))
	}
}

func main() {
	kind := "allocate"
	if len(os.Args) > 1 {
		kind = os.Args[1]
	}
	log, _ = os.CreateTemp("", "offender")
	os.Remove(log.Name())
	syscall.Pipe(pipe[:])
	go feed()
	runtime.LockOSThread()
	priority := int32(61)
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, 1,
		uintptr(unsafe.Pointer(&priority)))
	if errno != 0 {
		os.Exit(3)
	}
	for n := 0; ; n++ {
		step(kind, n)
		time.Sleep(time.Millisecond)
	}
}
