package main

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// How long a process works before it continues.
const lap = time.Microsecond

// W13: processes work for a microsecond and continue: most steps over fewest.
func (j job) fairness() ([]sample, error) {
	millis := j.elements()
	processes := or(j.processes, 100)
	if _, err := race(processes, time.Duration(millis)*time.Millisecond/warmUp); err != nil {
		return nil, err
	}
	laps, err := race(processes, time.Duration(millis)*time.Millisecond)
	if err != nil {
		return nil, err
	}
	fewest, most := slices.Min(laps), slices.Max(laps)
	if fewest == 0 {
		return nil, expect("processes that have not run at all", 1, 0)
	}
	ratio := float64(most) / float64(fewest)
	return []sample{{Variant: "ratio", Unit: "x", N: millis, Value: ratio}}, nil
}

// How many laps each process runs in that time.
func race(processes int, long time.Duration) ([]int, error) {
	var over atomic.Bool
	laps := make([]int, processes)
	g := newGate(processes)
	for i := range laps {
		go func() {
			done := 0
			for !over.Load() {
				work(lap)
				done++
				runtime.Gosched()
			}
			laps[i] = done
			g.hit()
		}()
	}
	time.Sleep(long)
	over.Store(true)
	return laps, g.wait()
}

// Computes for that long.
func work(long time.Duration) {
	for begin := time.Now(); time.Since(begin) < long; {
	}
}
