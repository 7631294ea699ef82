// A real-time thread that shares a sync.Mutex, or a channel, with another goroutine.
package main

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

var mutex sync.Mutex
var work = make(chan int)
var sum int

//go:noinline
func step(kind string) {
	if kind == "queue" {
		sum += <-work
		return
	}
	mutex.Lock()
	sum++
	mutex.Unlock()
}

func hold(kind string) {
	for {
		if kind == "queue" {
			work <- 1
		} else {
			mutex.Lock()
			for end := time.Now().Add(3 * time.Millisecond); time.Now().Before(end); {
				sum++
			}
			mutex.Unlock()
		}
		time.Sleep(4 * time.Millisecond)
	}
}

func main() {
	kind := "mutex"
	if len(os.Args) > 1 {
		kind = os.Args[1]
	}
	go hold(kind)
	runtime.LockOSThread()
	priority := int32(61)
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, 1,
		uintptr(unsafe.Pointer(&priority)))
	if errno != 0 {
		os.Exit(3)
	}
	for {
		step(kind)
		time.Sleep(time.Millisecond)
	}
}
