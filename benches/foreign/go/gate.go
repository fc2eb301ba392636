package main

import (
	"errors"
	"sync/atomic"
	"time"
)

// How long a gate waits before it takes what it measures for stuck.
const patience = 5 * time.Minute

// A counter whose last hit wakes the goroutine that waits, with a sum of what the hits bring along.
type gate struct {
	left, sum atomic.Int64
	open      chan struct{}
}

// Opens after that many hits.
func newGate(hits int) *gate {
	g := &gate{open: make(chan struct{})}
	g.left.Store(int64(hits))
	return g
}

func (g *gate) hit() {
	if g.left.Add(-1) == 0 {
		close(g.open)
	}
}

func (g *gate) hitWith(number int) {
	g.sum.Add(int64(number))
	g.hit()
}

func (g *gate) wait() error {
	stuck := time.NewTimer(patience)
	defer stuck.Stop()
	select {
	case <-g.open:
		return nil
	case <-stuck.C:
		return errors.New("stuck: the gate has not opened")
	}
}

// The time from before start until the gate opens; an error when the hits bring another sum.
func (g *gate) time(sum int, start func()) (time.Duration, error) {
	begin := time.Now()
	start()
	if err := g.wait(); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, expect("the sum", int(g.sum.Load()), sum)
}
