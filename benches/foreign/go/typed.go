package main

import (
	"sync/atomic"
	"time"
)

// A message of forty bytes: what kind it is, a number, and what makes it large.
type load struct {
	kind   uint64
	number int
	rest   [3]uint64
}

func loadOf(number int) load {
	return load{kind: 1, number: number, rest: [3]uint64{1, 2, 3}}
}

// W4t: as pingPong, with loads.
func typedPingPong(pairs, trips int) (time.Duration, error) {
	g := newGate(2 * pairs)
	whites := make([]chan load, pairs)
	for i := range whites {
		white, black := make(chan load, 1), make(chan load, 1)
		go typedPlay(white, black, g)
		go typedPlay(black, white, g)
		whites[i] = white
	}
	return g.time(pairs*(2*trips+1), func() {
		for _, white := range whites {
			white <- loadOf(2 * trips)
		}
	})
}

func typedPlay(in <-chan load, out chan<- load, g *gate) {
	got := 0
	for ball := range in {
		got++
		left := ball.number
		if left > 0 {
			ball.number--
			out <- ball
		}
		if left <= 1 {
			break
		}
	}
	g.hitWith(got)
}

// W5bt: as ring, with loads.
func typedRing(members int) func(tokens, hops int) (time.Duration, error) {
	return func(tokens, hops int) (time.Duration, error) {
		g, ended := newGate(tokens), newGate(members)
		var received atomic.Int64
		nodes := make([]chan load, members)
		for i := range nodes {
			nodes[i] = make(chan load, max(room, tokens/members+1))
		}
		for i := range nodes {
			go func() {
				received.Add(int64(typedPass(nodes[i], nodes[(i+1)%members], g)))
				ended.hit()
			}()
		}
		took, err := g.time(0, func() {
			for token := range tokens {
				nodes[token*members/tokens] <- loadOf(hops)
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

func typedPass(in <-chan load, next chan<- load, g *gate) int {
	got := 0
	for token := range in {
		got++
		if token.number > 0 {
			token.number--
			next <- token
		} else {
			g.hit()
		}
	}
	return got
}

// W6t: as fanIn, with loads.
func typedFanIn(producers, messages int) (time.Duration, error) {
	g := newGate(1)
	mail := make(chan load, producers*messages)
	go typedConsume(mail, producers*messages, g)
	return g.time(producers*sumBelow(messages), func() {
		for range producers {
			go func() {
				for number := range messages {
					mail <- loadOf(number)
				}
			}()
		}
	})
}

// W7t: as fanOut, with loads.
func typedFanOut(receivers, messages int) (time.Duration, error) {
	g := newGate(receivers)
	mails := make([]chan load, receivers)
	for i := range mails {
		mails[i] = make(chan load, messages)
		go typedConsume(mails[i], messages, g)
	}
	return g.time(receivers*sumBelow(messages), func() {
		go func() {
			for number := range messages {
				for _, mail := range mails {
					mail <- loadOf(number)
				}
			}
		}()
	})
}

func typedConsume(mail <-chan load, messages int, g *gate) {
	sum := 0
	for range messages {
		sum += (<-mail).number
	}
	g.hitWith(sum)
}
