package main

import "time"

// Processes that wait for a message, which ends them; their handles.
type crowd []chan int

// Starts processes. Each hits the gate, and waits.
func (c crowd) start() (time.Duration, error) {
	g := newGate(len(c))
	return g.time(0, func() {
		for i := range c {
			in := make(chan int, 1)
			c[i] = in
			go wait(in, g)
		}
	})
}

// Waits without a reference to the gate of the end, which is not there yet.
func wait(in <-chan int, ran *gate) {
	ran.hit()
	ended.hitWith(<-in)
}

// What a process hits when a message has ended it.
var ended *gate

// Sends each a message, upon which it ends.
func (c crowd) wake() (time.Duration, error) {
	ended = newGate(len(c))
	return ended.time(len(c), func() {
		for _, in := range c {
			in <- 1
		}
	})
}

// Handles, the memory of which is there before it is measured.
func newCrowd(processes int) crowd {
	c := make(crowd, processes)
	none := make(chan int)
	for i := range c {
		c[i] = none
	}
	return c
}

// W8: processes that ran once and wait; their memory, their start, and what a message takes each.
func (j job) memoryIdle() ([]sample, error) {
	n := j.elements()
	// Less than elsewhere: what it leaves to the allocator does not grow the measured run.
	few := newCrowd(max(n/100, 1))
	if _, err := few.start(); err != nil {
		return nil, err
	}
	if _, err := few.wake(); err != nil {
		return nil, err
	}
	all := newCrowd(n)
	before, err := resident()
	if err != nil {
		return nil, err
	}
	spawn, err := all.start()
	if err != nil {
		return nil, err
	}
	after, err := resident()
	if err != nil {
		return nil, err
	}
	wake, err := all.wake()
	return []sample{
		{Variant: "rss", Unit: "bytes", N: n, Value: max(float64(after-before)/float64(n), 0)},
		{Variant: "spawn", Unit: "ns", N: n, Value: nanosEach(spawn, n)},
		{Variant: "wake", Unit: "ns", N: n, Value: nanosEach(wake, n)},
	}, err
}

// W10: all is idle; from a send of the main thread to the process's own look at the clock.
func (j job) wakeLatency() ([]sample, error) {
	epoch := time.Now()
	in, heard := make(chan time.Duration, 1), make(chan time.Duration, 1)
	defer close(in)
	go func() {
		for sent := range in {
			heard <- time.Since(epoch) - sent
		}
	}()
	samples := j.elements()
	warm := samples / warmUp
	times := make(latencies, 0, samples)
	var before int64
	for number := range warm + samples {
		if number == warm {
			var err error
			if before, err = switches(); err != nil {
				return nil, err
			}
		}
		time.Sleep(time.Millisecond)
		in <- time.Since(epoch)
		if took := <-heard; number >= warm {
			times = append(times, took)
		}
	}
	slept, err := switches()
	if err != nil {
		return nil, err
	}
	p50 := times.sample("p50", 50, "us", time.Microsecond, samples)
	p99 := sample{Variant: "p99", Unit: "us", N: samples, Value: *p50.P99}
	each := float64(slept-before) / float64(samples)
	return []sample{p50, p99, {Variant: "switches", Unit: "a sample", N: samples, Value: each}}, nil
}

// W11: the processor time that idle processes take, in ms a second.
func (j job) idleCPU() ([]sample, error) {
	idle := newCrowd(or(j.processes, 1_000))
	if _, err := idle.start(); err != nil {
		return nil, err
	}
	millis := j.elements()
	samples, err := idleFor(time.Duration(millis)*time.Millisecond, millis)
	if err != nil {
		return nil, err
	}
	_, err = idle.wake()
	return samples, err
}

// The processor time, and the switches, of what has nothing to do for so long.
func idleFor(pause time.Duration, n int) ([]sample, error) {
	// What has been started has nothing left to do by then.
	time.Sleep(100 * time.Millisecond)
	slept, err := switches()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	before, err := processorTime()
	if err != nil {
		return nil, err
	}
	time.Sleep(pause)
	took := time.Since(begin)
	after, err := processorTime()
	if err != nil {
		return nil, err
	}
	sleptNow, err := switches()
	used := float64((after - before).Nanoseconds()) / 1e6 / took.Seconds()
	return []sample{
		{Variant: "cpu", Unit: "ms/s", N: n, Value: used},
		{Variant: "switches", Unit: "a second", N: n, Value: float64(sleptNow-slept) / took.Seconds()},
	}, err
}
