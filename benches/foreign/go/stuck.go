package main

import (
	"runtime"
	"sync/atomic"
	"time"
)

// How long a process blocks its thread in a step.
const stuck = 500 * time.Millisecond

// How often the others are due.
const period = time.Millisecond

// In what lateness is noted: 32 bits are enough for 42 seconds.
const unit = 10 * time.Nanosecond

// W12: processes sleep in a step, and with them their thread.
func (j job) stuckSleeping() ([]sample, error) {
	if err := blockThread(time.Microsecond); err != nil {
		return nil, err
	}
	return j.stuckWorkers(func() { _ = blockThread(stuck) })
}

// W12cpu: processes compute in a step.
func (j job) stuckComputing() ([]sample, error) {
	return j.stuckWorkers(compute)
}

// What was computed last, so that it is not left out.
var computed atomic.Uint64

// Looks at the clock seldom: in that, unlike in what other programs compute, Go does not preempt.
func compute() {
	number := computed.Load()
	for begin := time.Now(); time.Since(begin) < stuck; {
		for range 10_000 {
			number = number*6364136223846793005 + 1442695040888963407
		}
	}
	computed.Store(number)
}

// As many processes as workers block, again and again: how late others are that are due every ms,
// which the main thread tells them, as a thread with a timer does elsewhere. With timers of their
// own they are later.
func (j job) stuckWorkers(block func()) ([]sample, error) {
	ticks := j.elements()
	workers := runtime.GOMAXPROCS(0)
	b := newBoard(or(j.processes, 1_000), ticks)
	ended := newGate(len(b.mails) + workers)
	for process := range b.mails {
		go b.arrive(process, ended)
	}
	var over atomic.Bool
	b.begin = time.Now()
	for range workers {
		go func() {
			for !over.Load() {
				block()
				runtime.Gosched()
			}
			ended.hit()
		}()
	}
	for tick := range ticks {
		time.Sleep(-b.late(tick))
		for _, mail := range b.mails {
			mail <- tick
		}
	}
	time.Sleep(-b.late(ticks))
	times := b.lateness()
	over.Store(true)
	for _, mail := range b.mails {
		close(mail)
	}
	if err := ended.wait(); err != nil {
		return nil, err
	}
	p99 := times.sample("p99", 99, "ms", time.Millisecond, ticks)
	worst := sample{Variant: "max", Unit: "ms", N: ticks, Value: *p99.Max}
	return []sample{p99, worst}, nil
}

// How late each of many processes was at each tick.
type board struct {
	begin time.Time
	mails []chan int
	// Tick by tick, for each process: how late it was, plus one unit. 0: it has not run.
	cells []atomic.Uint32
}

func newBoard(processes, ticks int) *board {
	b := &board{mails: make([]chan int, processes), cells: make([]atomic.Uint32, processes*ticks)}
	for i := range b.mails {
		// Never full, or one process that waits would hold up all.
		b.mails[i] = make(chan int, ticks)
	}
	return b
}

// How long ago a tick was due; negative when it is still to come.
func (b *board) late(tick int) time.Duration {
	return time.Since(b.begin) - time.Duration(tick+1)*period
}

// Runs for each tick that it is told of.
func (b *board) arrive(process int, ended *gate) {
	for tick := range b.mails[process] {
		b.cells[tick*len(b.mails)+process].Store(uint32(b.late(tick)/unit + 1))
	}
	ended.hit()
}

// How late each process was at each tick; those that have not run by now are so late already.
func (b *board) lateness() latencies {
	times := make(latencies, len(b.cells))
	for at := range b.cells {
		if noted := b.cells[at].Load(); noted > 0 {
			times[at] = time.Duration(noted-1) * unit
		} else {
			times[at] = b.late(at / len(b.mails))
		}
	}
	return times
}
