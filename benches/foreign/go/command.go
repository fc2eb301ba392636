package main

import "time"

// What carries a command out: it answers through the channel, at once or later.
type handler func(number int, answer chan<- int)

// Known at run time only, as in a registry: no compiler sees which function is called.
var handlers = map[string]handler{}

// W9: a process yields commands in sequence to a handler that answers at once.
func commandInline(commands int) (time.Duration, error) {
	handlers["echo"] = func(number int, answer chan<- int) { answer <- number }
	return yieldCommands("echo", commands)
}

// A command on its way to the process that carries it out.
type request struct {
	number int
	answer chan<- int
}

// W9ask: the same, where another process, set up, answers.
func commandAsk(commands int) (time.Duration, error) {
	requests := make(chan request, 1)
	defer close(requests)
	go func() {
		for r := range requests {
			r.answer <- r.number
		}
	}()
	handlers["ask"] = func(number int, answer chan<- int) { requests <- request{number, answer} }
	return yieldCommands("ask", commands)
}

// Each has a channel of its own: an answer that comes late must not be taken for another.
func yieldCommands(name string, commands int) (time.Duration, error) {
	carryOut := handlers[name]
	g := newGate(1)
	return g.time(sumBelow(commands+1), func() {
		go func() {
			sum := 0
			for left := commands; left > 0; left-- {
				answer := make(chan int, 1)
				carryOut(left, answer)
				sum += <-answer
			}
			g.hitWith(sum)
		}()
	})
}
