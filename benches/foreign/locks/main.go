// Go's locks, in the workloads of `benches/src/locks`: prints nanoseconds for each turn or waiter,
// and for contended mutexes the worst wait in microseconds.
//
//	locks mutex 1 0 TURNS
//	locks contended GOROUTINES MICROSECONDS TURNS
//	locks semaphore GOROUTINES PERMITS TURNS
//	locks wake WAITERS CLOSES 0
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

func main() {
	runtime.GOMAXPROCS(2)
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(os.Args[i+2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	run := map[string]func(a, b, turns int) []float64{
		"mutex": alone, "contended": contended, "semaphore": semaphore, "wake": wake,
	}[os.Args[1]]
	run(n[0], n[1], n[2]/20)
	for _, figure := range run(n[0], n[1], n[2]) {
		fmt.Println(figure)
	}
}

func each(took time.Duration, of int) float64 {
	return float64(took.Nanoseconds()) / float64(max(of, 1))
}

func alone(_, _, turns int) []float64 {
	var mutex sync.Mutex
	number := 0
	start := time.Now()
	for range turns {
		mutex.Lock()
		number++
		mutex.Unlock()
	}
	took := time.Since(start)
	if number != turns {
		os.Exit(1)
	}
	return []float64{each(took, turns)}
}

func spin(inside time.Duration) {
	for begun := time.Now(); time.Since(begun) < inside; {
	}
}

func contended(goroutines, micros, turns int) []float64 {
	var mutex sync.Mutex
	var all sync.WaitGroup
	number, inside := 0, time.Duration(micros)*time.Microsecond
	waits := make(chan time.Duration, goroutines)
	start := time.Now()
	for range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			worst, last := time.Duration(0), time.Since(start)
			for range turns / goroutines {
				mutex.Lock()
				number++
				if inside > 0 {
					spin(inside)
				}
				mutex.Unlock()
				// A single look at the clock a turn, which takes as long as a turn, and not inside.
				now := time.Since(start)
				worst = max(worst, now-last-inside)
				last = now
			}
			waits <- worst
		}()
	}
	all.Wait()
	took := time.Since(start)
	close(waits)
	var worst time.Duration
	for wait := range waits {
		worst = max(worst, wait)
	}
	return []float64{each(took, number), float64(worst.Nanoseconds()) / 1e3}
}

// A channel with as many places as permits is Go's semaphore.
func semaphore(goroutines, permits, turns int) []float64 {
	places := make(chan struct{}, permits)
	var all sync.WaitGroup
	start := time.Now()
	for range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			for range turns / goroutines {
				places <- struct{}{}
				<-places
			}
		}()
	}
	all.Wait()
	return []float64{each(time.Since(start), turns/goroutines*goroutines)}
}

func wake(waiters, closes, _ int) []float64 {
	var mutex sync.Mutex
	word, closed := sync.NewCond(&mutex), make(chan struct{})
	var asleep, all sync.WaitGroup
	asleep.Add(waiters)
	for range waiters {
		all.Add(1)
		go func() {
			defer all.Done()
			if closes > 0 {
				asleep.Done()
				<-closed
				return
			}
			mutex.Lock()
			asleep.Done()
			word.Wait()
			mutex.Unlock()
		}()
	}
	asleep.Wait()
	// Those that are about to wait for the channel do so.
	time.Sleep(10 * time.Millisecond)
	start := time.Now()
	if closes > 0 {
		close(closed)
	} else {
		mutex.Lock()
		word.Broadcast()
		mutex.Unlock()
	}
	all.Wait()
	return []float64{each(time.Since(start), waiters)}
}
