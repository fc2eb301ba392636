package main

import "time"

// W1: the main thread spawns processes; each runs once, hits the gate, and ends.
func spawn(processes int) (time.Duration, error) {
	g := newGate(processes)
	return g.time(0, func() {
		for range processes {
			go g.hit()
		}
	})
}

// How many children a process of the tree has.
const children = 10

// W2: leaves send their number to their parent, parents the sum.
func (j job) skynet() ([]sample, error) {
	levels := max(j.levels(), 1)
	if _, err := tree(max(levels-2, 1)); err != nil {
		return nil, err
	}
	took, err := tree(levels)
	processes, leaves := 1, 1
	for range levels {
		leaves *= children
		processes += leaves
	}
	ms := float64(took) / float64(time.Millisecond)
	return []sample{{Variant: "time", Unit: "ms", N: processes, Value: ms}}, err
}

// Levels of the largest tree that has no more processes than the job.
func (j job) levels() int {
	levels := 0
	for processes := 1 + children; processes <= j.elements(); processes = processes*children + 1 {
		levels++
	}
	return levels
}

func tree(levels int) (time.Duration, error) {
	leaves := 1
	for range levels {
		leaves *= children
	}
	g := newGate(1)
	root := make(chan int, 1)
	return g.time(sumBelow(leaves), func() {
		go func() {
			grow(root, 0, leaves)
			g.hitWith(<-root)
		}()
	})
}

// A process with that many leaves below it, or one that is itself the leaf.
func grow(parent chan<- int, number, leaves int) {
	if leaves == 1 {
		parent <- number
		return
	}
	leaves /= children
	sums := make(chan int, children)
	for child := range children {
		go grow(sums, number+child*leaves, leaves)
	}
	sum := 0
	for range children {
		sum += <-sums
	}
	parent <- sum
}
