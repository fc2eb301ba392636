package main

import (
	"sync/atomic"
	"time"
)

// How many tokens a member has room for at least: when more come, who sends the next waits.
const room = 16

// W5: a ring, set up; tokens, which start evenly spread, go that many hops each.
func ring(members int) func(tokens, hops int) (time.Duration, error) {
	return func(tokens, hops int) (time.Duration, error) {
		g, ended := newGate(tokens), newGate(members)
		var received atomic.Int64
		nodes := make([]chan int, members)
		for i := range nodes {
			// All together have room for more tokens than there are, or all would wait for ever.
			nodes[i] = make(chan int, max(room, tokens/members+1))
		}
		for i := range nodes {
			go func() {
				received.Add(int64(pass(nodes[i], nodes[(i+1)%members], g)))
				ended.hit()
			}()
		}
		took, err := g.time(0, func() {
			for token := range tokens {
				nodes[token*members/tokens] <- hops
			}
		})
		if err != nil {
			return 0, err
		}
		for _, node := range nodes {
			close(node)
		}
		if err := ended.wait(); err != nil {
			return 0, err
		}
		return took, expect("messages received", int(received.Load()), tokens*(hops+1))
	}
}

// Passes tokens on, and hits the gate with each that is at its end; how many it got before the ring
// was closed.
func pass(in <-chan int, next chan<- int, g *gate) int {
	got := 0
	for left := range in {
		got++
		if left > 0 {
			next <- left - 1
		} else {
			g.hit()
		}
	}
	return got
}
