package main

import (
	"runtime"
	"time"
)

// W3: processes continue that often each. They bring along how often they have.
func yield(processes, each int) (time.Duration, error) {
	g := newGate(processes)
	return g.time(processes*each, func() {
		for range processes {
			go func() {
				steps := 0
				for range each {
					steps++
					runtime.Gosched()
				}
				g.hitWith(steps)
			}()
		}
	})
}
