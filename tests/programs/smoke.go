// SPDX-License-Identifier: GPL-2.0

// Go with goroutines, channels, a timer and the garbage collector at work; see
// check.h for the protocol of READY and GO.
package main

import (
	"os"
	"runtime"
	"sync"
	"time"
)

func main() {
	ready, goFile := os.Args[1], os.Args[2]
	table := map[int][]byte{}
	for i := 0; i < 2000; i++ {
		table[i] = make([]byte, 100+i%50)
		table[i][i%100] = byte(i)
	}
	in, out := make(chan int), make(chan int)
	var group sync.WaitGroup
	for i := 0; i < 50; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := range in {
				out <- n * 2
			}
		}()
	}
	if os.WriteFile(ready, []byte("ready\n"), 0o666) != nil {
		os.Exit(2)
	}
	for {
		if _, err := os.Stat(goFile); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	sum := 0
	for i := 0; i < 500; i++ {
		in <- i
		sum += <-out
	}
	close(in)
	group.Wait()
	runtime.GC()
	for i := 0; i < 2000; i++ {
		if len(table[i]) != 100+i%50 || table[i][i%100] != byte(i) {
			os.Exit(1)
		}
	}
	if sum != 499*500 {
		os.Exit(1)
	}
}
