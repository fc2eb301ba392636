package main

import "time"

// W6: producers send the numbers below `messages` each, in one go, to a consumer that is set up.
func fanIn(producers, messages int) (time.Duration, error) {
	g := newGate(1)
	mail := make(chan int, producers*messages)
	go consume(mail, producers*messages, g)
	return g.time(producers*sumBelow(messages), func() {
		for range producers {
			go func() {
				for number := range messages {
					mail <- number
				}
			}()
		}
	})
}

// W7: one sender sends each of the numbers below `messages` to all receivers, which are set up.
func fanOut(receivers, messages int) (time.Duration, error) {
	g := newGate(receivers)
	mails := make([]chan int, receivers)
	for i := range mails {
		mails[i] = make(chan int, messages)
		go consume(mails[i], messages, g)
	}
	return g.time(receivers*sumBelow(messages), func() {
		go func() {
			for number := range messages {
				for _, mail := range mails {
					mail <- number
				}
			}
		}()
	})
}

// Takes that many numbers, and brings their sum to the gate.
func consume(mail <-chan int, messages int, g *gate) {
	sum := 0
	for range messages {
		sum += <-mail
	}
	g.hitWith(sum)
}
