package main

import "time"

// W4: pairs, set up, count a number down in turns, that many round trips each.
func pingPong(pairs, trips int) (time.Duration, error) {
	g := newGate(2 * pairs)
	whites := make([]chan int, pairs)
	for i := range whites {
		white, black := make(chan int, 1), make(chan int, 1)
		go play(white, black, g)
		go play(black, white, g)
		whites[i] = white
	}
	return g.time(pairs*(2*trips+1), func() {
		for _, white := range whites {
			// The first message, and the last, which is a zero, are half a round trip each.
			white <- 2 * trips
		}
	})
}

// One half of a pair. It brings along how many messages it got.
func play(in <-chan int, out chan<- int, g *gate) {
	got := 0
	for left := range in {
		got++
		if left > 0 {
			out <- left - 1
		}
		// One half sees `1`, the other `0`.
		if left <= 1 {
			break
		}
	}
	g.hitWith(got)
}
