package main

import (
	"runtime"
	"sync/atomic"
	"time"
)

// How many processes compute beside those that are woken, and for how long each does in a step.
const (
	busy      = 7
	longStep  = time.Millisecond
	shortStep = 10 * time.Microsecond
)

// How often one of their steps sends, and how often the main thread does.
const (
	round = 100 * time.Millisecond
	pause = 10 * time.Millisecond
)

// How long a receiver may take at the end.
const grace = 2 * time.Second

// W13b: a step sends to processes that wait, beside others that compute and continue.
func (j job) wokenBesideBusy(step time.Duration) ([]sample, error) {
	rounds := j.elements()
	w := newWoken(or(j.processes, 100), rounds)
	over := make(chan struct{})
	w.compute(step, func(sent int) {
		if sent < rounds {
			w.send(sent)
		} else if sent == rounds {
			close(over)
		}
	})
	<-over
	return w.end(rounds)
}

// W13c: the main thread, which is no worker, sends to one of them.
func (j job) wokenFromOutside(step time.Duration) ([]sample, error) {
	w := newWoken(1, j.elements())
	w.compute(step, func(int) {})
	time.Sleep(round)
	for tick := range j.elements() {
		time.Sleep(pause)
		w.send(tick)
	}
	return w.end(j.elements())
}

// W13d: as W13b, where the main thread wakes the process that sends.
func (j job) wokenByHerald(step time.Duration) ([]sample, error) {
	w := newWoken(or(j.processes, 100), j.elements())
	w.compute(step, func(int) {})
	herald := make(chan int)
	go func() {
		for tick := range herald {
			w.send(tick)
		}
	}()
	for tick := range j.elements() {
		time.Sleep(round)
		herald <- tick
	}
	close(herald)
	return w.end(j.elements())
}

// Processes that wait, and others that compute.
type woken struct {
	*board
	// When each tick was sent, from the beginning.
	sent  []atomic.Int64
	ended *gate
	over  atomic.Bool
}

func newWoken(receivers, ticks int) *woken {
	w := &woken{
		board: newBoard(receivers, ticks),
		sent:  make([]atomic.Int64, ticks),
		ended: newGate(receivers + busy),
	}
	w.begin = time.Now()
	for process := range w.mails {
		go func() {
			for tick := range w.mails[process] {
				w.cells[tick*receivers+process].Store(uint32(w.since(tick)/unit + 1))
			}
			w.ended.hit()
		}()
	}
	return w
}

// How long ago a tick was sent.
func (w *woken) since(tick int) time.Duration {
	return time.Since(w.begin) - time.Duration(w.sent[tick].Load())
}

func (w *woken) send(tick int) {
	w.sent[tick].Store(int64(time.Since(w.begin)))
	for _, mail := range w.mails {
		mail <- tick
	}
}

// Starts those that compute and continue; one of them calls `send` each round, with its number.
func (w *woken) compute(step time.Duration, send func(sent int)) {
	var next atomic.Int64
	for range busy {
		go func() {
			for !w.over.Load() {
				work(step)
				sent := next.Load()
				due := time.Duration(sent+1) * round
				if time.Since(w.begin) >= due && next.CompareAndSwap(sent, sent+1) {
					send(int(sent))
				}
				runtime.Gosched()
			}
			w.ended.hit()
		}()
	}
}

// Waits for the receivers, and ends all.
func (w *woken) end(n int) ([]sample, error) {
	for begin := time.Now(); !w.isFull() && time.Since(begin) < grace; {
		time.Sleep(period)
	}
	times := make(latencies, len(w.cells))
	for at := range w.cells {
		if noted := w.cells[at].Load(); noted > 0 {
			times[at] = time.Duration(noted-1) * unit
		} else {
			times[at] = w.since(at / len(w.mails))
		}
	}
	w.over.Store(true)
	for _, mail := range w.mails {
		close(mail)
	}
	if err := w.ended.wait(); err != nil {
		return nil, err
	}
	p99 := times.sample("p99", 99, "us", time.Microsecond, n)
	p50 := sample{Variant: "p50", Unit: "us", N: n, Value: *p99.P50}
	return []sample{p50, p99}, nil
}

// Whether every process has run for every tick.
func (w *woken) isFull() bool {
	for at := range w.cells {
		if w.cells[at].Load() == 0 {
			return false
		}
	}
	return true
}
