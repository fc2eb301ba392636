package main

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// How long timers wait that are not to fire.
const hour = time.Hour

// Evenly over that time, in no order.
func scattered(number int, over time.Duration) time.Duration {
	return time.Duration(uint64(number) * 0x9e3779b97f4a7c15 % uint64(over))
}

// W14: a process sets a timer for 1 to 60 s and cancels it; alone, and beside others that wait.
func (j job) timerChurn(between func()) ([]sample, error) {
	n := j.elements()
	measure := func() (time.Duration, error) {
		if _, err := churn(max(n/warmUp, 1), between); err != nil {
			return 0, err
		}
		return churn(n, between)
	}
	alone, err := measure()
	if err != nil {
		return nil, err
	}
	others := newCrowd(or(j.processes, n))
	if _, err := others.startTimed(time.Now().Add(hour), hour); err != nil {
		return nil, err
	}
	crowded, err := measure()
	if err != nil {
		return nil, err
	}
	_, err = others.wakeTimed()
	return []sample{
		{Variant: "alone", Unit: "ns", N: n, Value: nanosEach(alone, n)},
		{Variant: "crowded", Unit: "ns", N: n, Value: nanosEach(crowded, n)},
	}, err
}

// Returns how long it took; an error when not all timers were cancelled.
func churn(rounds int, between func()) (time.Duration, error) {
	g := newGate(1)
	return g.time(rounds, func() {
		go func() {
			cancelled := 0
			for number := range rounds {
				timer := time.AfterFunc(time.Second+scattered(number, 59*time.Second), func() {})
				between()
				if timer.Stop() {
					cancelled++
				}
			}
			g.hitWith(cancelled)
		}()
	})
}

// Starts processes. Each hits the gate, and waits for a message, or for a timer of its own.
func (c crowd) startTimed(first time.Time, span time.Duration) (time.Duration, error) {
	ended = newGate(len(c))
	g := newGate(len(c))
	return g.time(0, func() {
		for i := range c {
			in := make(chan int, 1)
			c[i] = in
			go waitTimed(in, time.Until(first)+scattered(i, span), g)
		}
	})
}

func waitTimed(in <-chan int, left time.Duration, ran *gate) {
	timer := time.NewTimer(left)
	ran.hit()
	select {
	case <-in:
	case <-timer.C:
	}
	ended.hit()
}

// Sends each a message, upon which it ends.
func (c crowd) wakeTimed() (time.Duration, error) {
	return ended.time(0, func() {
		for _, in := range c {
			in <- 1
		}
	})
}

// W15: the processor time of timers that are due within so many seconds, insertion apart.
func (j job) timerFire(seconds int) ([]sample, error) {
	// So long it may take to set them. Before the first is due, all of them are set.
	lead, span := 8*time.Second, time.Duration(seconds)*time.Second
	if j.quick {
		lead, span = 4*time.Second, span/10
	}
	n := j.elements()
	all := newCrowd(n)
	first := time.Now().Add(lead)
	if _, err := all.startTimed(first, span); err != nil {
		return nil, err
	}
	left := time.Until(first)
	if left <= 0 {
		return nil, errors.New("timers were due before all were set")
	}
	time.Sleep(left)
	before, err := processorTime()
	if err != nil {
		return nil, err
	}
	if err := ended.wait(); err != nil {
		return nil, err
	}
	after, err := processorTime()
	return []sample{{Variant: "cpu", Unit: "ns", N: n, Value: nanosEach(after-before, n)}}, err
}

// W16: how late processes run that sleep again and again, beside others that block.
func (j job) timerLateness(blockers int, block func()) ([]sample, error) {
	n, processes := j.elements(), or(j.processes, 1_000)
	var over atomic.Bool
	var lock sync.Mutex
	var times latencies
	g := newGate(processes + blockers)
	for range blockers {
		go func() {
			for !over.Load() {
				block()
				runtime.Gosched()
			}
			g.hit()
		}()
	}
	early := 0
	for process := range processes {
		go func() {
			var late latencies
			for number := process << 32; !over.Load(); number++ {
				rest := time.Millisecond + scattered(number, 19*time.Millisecond)
				due := time.Now().Add(rest)
				time.Sleep(rest)
				late = append(late, time.Since(due))
			}
			lock.Lock()
			defer lock.Unlock()
			for _, time := range late {
				if time < 0 {
					early++
				}
			}
			times = append(times, late...)
			g.hit()
		}()
	}
	time.Sleep(time.Duration(n) * time.Millisecond)
	over.Store(true)
	if err := g.wait(); err != nil {
		return nil, err
	}
	if err := expect("timers that are too early", early, 0); err != nil {
		return nil, err
	}
	p99 := times.sample("p99", 99, "us", time.Microsecond, n)
	return []sample{
		{Variant: "p50", Unit: "us", N: n, Value: *p99.P50},
		p99,
		{Variant: "max", Unit: "us", N: n, Value: *p99.Max},
	}, nil
}

// W17: timers that wait for an hour: their memory, and what they take.
func (j job) timersIdle() ([]sample, error) {
	n := j.elements()
	few := newCrowd(max(n/100, 1))
	if _, err := few.startTimed(time.Now().Add(hour), hour); err != nil {
		return nil, err
	}
	if _, err := few.wakeTimed(); err != nil {
		return nil, err
	}
	without, with := newCrowd(n), newCrowd(n)
	var memory [3]int64
	for i, start := range []func() (time.Duration, error){
		func() (time.Duration, error) { return 0, nil },
		without.start,
		func() (time.Duration, error) { return with.startTimed(time.Now().Add(hour), hour) },
	} {
		if _, err := start(); err != nil {
			return nil, err
		}
		bytes, err := resident()
		if err != nil {
			return nil, err
		}
		memory[i] = int64(bytes)
	}
	more := (memory[2] - memory[1]) - (memory[1] - memory[0])
	pause := 5 * time.Second
	if j.quick {
		pause /= 10
	}
	idle, err := idleFor(pause, n)
	if err != nil {
		return nil, err
	}
	if _, err := with.wakeTimed(); err != nil {
		return nil, err
	}
	_, err = without.wake()
	rss := sample{Variant: "rss", Unit: "bytes", N: n, Value: max(float64(more)/float64(n), 0)}
	return append([]sample{rss}, idle...), err
}
