// A profiler that is half in Go: its runtime starts threads, makes its own calls of the system, and sets handlers for signals.
package main

import "C"
import "time"

// What goroutines give each other arrives, also if they sleep.
//
//export aggregate
func aggregate(count int) int {
	parts := make(chan int)
	for i := 1; i <= count; i++ {
		go func(part int) {
			time.Sleep(time.Millisecond)
			parts <- part
		}(i)
	}
	sum := 0
	for i := 0; i < count; i++ {
		sum += <-parts
	}
	return sum
}

func main() {}
