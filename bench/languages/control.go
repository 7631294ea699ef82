// A loop of 1 ms that allocates and writes, on a thread of its own.
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

var kept [][]byte

func step(number int, null *os.File) {
	kept = append(kept, make([]byte, 2000+number%100))
	if len(kept) > 500 {
		kept = nil
	}
	if number%10 == 0 {
		fmt.Fprintln(null, "cycle", number)
	}
}

func main() {
	runtime.LockOSThread()
	null, _ := os.Create("/dev/null")
	for number := 0; ; number++ {
		step(number, null)
		time.Sleep(time.Millisecond)
	}
}
