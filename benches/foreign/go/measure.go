package main

import (
	"fmt"
	"runtime"
	"time"
)

// What there is to do.
type job struct {
	workload
	quick bool
	// 0: the workload's own number.
	processes, producers, rounds int
}

// A workload, with how many elements it has.
type workload struct {
	id          string
	full, quick int
	// None: Go has nothing of the kind.
	run func(job) ([]sample, error)
	// Why there is none.
	missing string
}

// In the order of the catalog of the program that starts this one, with the same sizes.
var workloads = []workload{
	{"W1", 1_000_000, 50_000, func(j job) ([]sample, error) {
		return j.withProcesses().each(1, spawn)
	}, ""},
	{"W2", 1_111_111, 11_111, func(j job) ([]sample, error) { return j.withProcesses().skynet() }, ""},
	{"W3a", 1_000_000, 50_000, func(j job) ([]sample, error) { return j.parts(1, yield) }, ""},
	{"W3b", 1_000_000, 50_000, func(j job) ([]sample, error) {
		return j.parts(or(j.processes, 100), yield)
	}, ""},
	{"W4", 1_000_000, 20_000, func(j job) ([]sample, error) { return j.parts(1, pingPong) }, ""},
	{"W4b", 1_000_000, 50_000, func(j job) ([]sample, error) {
		return j.parts(or(j.processes, 1_000), pingPong)
	}, ""},
	{"W4pid", 1_000_000, 20_000, nil, "goroutines have no PIDs to send to"},
	{"W4t", 1_000_000, 20_000, func(j job) ([]sample, error) {
		return j.parts(1, typedPingPong)
	}, ""},
	{"W5", 1_000_000, 50_000, func(j job) ([]sample, error) {
		return j.parts(1, ring(or(j.processes, 10_000)))
	}, ""},
	{"W5b", 1_000_000, 50_000, func(j job) ([]sample, error) {
		return j.parts(100, ring(or(j.processes, 10_000)))
	}, ""},
	{"W5bt", 1_000_000, 50_000, func(j job) ([]sample, error) {
		return j.parts(100, typedRing(or(j.processes, 10_000)))
	}, ""},
	{"W6", 1_000_000, 50_000, func(j job) ([]sample, error) {
		return j.parts(or(j.producers, 100), fanIn)
	}, ""},
	{"W6all", 1_000_000, 50_000, nil, "a channel is sent one message at a time"},
	{"W6t", 1_000_000, 50_000, func(j job) ([]sample, error) {
		return j.parts(or(j.producers, 100), typedFanIn)
	}, ""},
	{"W7", 1_000_000, 50_000, func(j job) ([]sample, error) {
		return j.parts(or(j.processes, 1_000), fanOut)
	}, ""},
	{"W7t", 1_000_000, 50_000, func(j job) ([]sample, error) {
		return j.parts(or(j.processes, 1_000), typedFanOut)
	}, ""},
	{"W8", 1_000_000, 20_000, func(j job) ([]sample, error) {
		return j.withProcesses().memoryIdle()
	}, ""},
	{"W9", 1_000_000, 50_000, func(j job) ([]sample, error) { return j.each(1, commandInline) }, ""},
	{"W9ask", 1_000_000, 50_000, func(j job) ([]sample, error) { return j.each(1, commandAsk) }, ""},
	{"W10", 2_000, 200, job.wakeLatency, ""},
	{"W10spin", 2_000, 200, nil, "it is measured beside tokio alone"},
	{"W10busy", 2_000, 200, nil, "it is measured beside tokio alone"},
	{"W10busyspin", 2_000, 200, nil, "it is measured beside tokio alone"},
	{"W11", 5_000, 500, job.idleCPU, ""},
	{"W12", 5_000, 1_000, job.stuckSleeping, ""},
	{"W12cpu", 5_000, 1_000, job.stuckComputing, ""},
	{"W13", 3_000, 500, job.fairness, ""},
	{"W13b", 30, 4, func(j job) ([]sample, error) { return j.wokenBesideBusy(longStep) }, ""},
	{"W13b10", 30, 4, func(j job) ([]sample, error) { return j.wokenBesideBusy(shortStep) }, ""},
	{"W13c", 300, 40, func(j job) ([]sample, error) { return j.wokenFromOutside(longStep) }, ""},
	{"W13c10", 300, 40, func(j job) ([]sample, error) { return j.wokenFromOutside(shortStep) }, ""},
	{"W13d", 30, 4, func(j job) ([]sample, error) { return j.wokenByHerald(longStep) }, ""},
	{"W13d10", 30, 4, func(j job) ([]sample, error) { return j.wokenByHerald(shortStep) }, ""},
	{"W14", 1_000_000, 50_000, func(j job) ([]sample, error) { return j.timerChurn(func() {}) }, ""},
	{"W14step", 1_000_000, 50_000, func(j job) ([]sample, error) {
		return j.timerChurn(runtime.Gosched)
	}, ""},
	{"W15", 1_000_000, 20_000, func(j job) ([]sample, error) {
		return j.withProcesses().timerFire(1)
	}, ""},
	{"W15min", 1_000_000, 20_000, func(j job) ([]sample, error) {
		return j.withProcesses().timerFire(60)
	}, ""},
	{"W16", 10_000, 1_000, func(j job) ([]sample, error) { return j.timerLateness(0, nil) }, ""},
	{"W16b", 10_000, 1_000, func(j job) ([]sample, error) {
		return j.timerLateness(busy, func() { work(longStep) })
	}, ""},
	{"W16b10", 10_000, 1_000, func(j job) ([]sample, error) {
		return j.timerLateness(busy, func() { work(shortStep) })
	}, ""},
	{"W16stuck", 10_000, 1_000, func(j job) ([]sample, error) {
		return j.timerLateness(runtime.GOMAXPROCS(0), func() { _ = blockThread(stuck) })
	}, ""},
	{"W17", 1_000_000, 20_000, func(j job) ([]sample, error) {
		return j.withProcesses().timersIdle()
	}, ""},
	{"A1", 1_000_000, 50_000, nil, "goroutines run it as W1"},
	{"A2a", 1_000_000, 50_000, nil, "goroutines run it as W3a"},
	{"A2b", 1_000_000, 50_000, nil, "goroutines run it as W3b"},
	{"A3", 1_000_000, 20_000, nil, "goroutines run it as W4"},
	{"A4", 1_000_000, 50_000, nil, "goroutines run it as W4b"},
	{"A5", 1_000_000, 50_000, nil, "goroutines run it as W5b"},
	{"A6", 1_000_000, 50_000, nil, "goroutines run it as W6"},
	{"A7", 1_000_000, 20_000, nil, "goroutines run it as W8"},
	{"A8", 1_000_000, 50_000, nil, "goroutines run it as W9ask"},
	{"S1", 1_000_000, 50_000, func(j job) ([]sample, error) { return j.each(1, commandAsk) }, ""},
	{"S1out", 100_000, 5_000, nil, "its main thread is a goroutine"},
	{"S2", 1_000_000, 50_000, nil, "no goroutine is told of the end of another"},
	{"S3", 500_000, 20_000, nil, "no goroutine is told of the end of another"},
	{"S3in", 500_000, 20_000, nil, "a goroutine that has ended is gone"},
	{"S4", 1_000_000, 50_000, nil, "it has no groups that are sent to by one call"},
	{"S4each", 1_000_000, 50_000, nil, "goroutines run it as W7"},
	{"S5", 1_000_000, 50_000, nil, "it is not measured with jobs"},
	{"S5us", 1_000_000, 50_000, nil, "it is not measured with jobs"},
	{"Q2", 800_000, 40_000, nil, "it compares Ganger's limited mailboxes with its others"},
}

// Warm-up does this part of the work.
const warmUp = 20

// How many elements there are.
func (j job) elements() int {
	if j.quick {
		return or(j.rounds, j.workload.quick)
	}
	return or(j.rounds, j.full)
}

// The same for a workload whose elements are processes.
func (j job) withProcesses() job {
	j.rounds = or(j.rounds, j.processes)
	return j
}

// Measures elements in that many equal parts: `do` takes one part's count for each of them, and
// returns the time that all of them took.
func (j job) parts(parts int, do func(parts, each int) (time.Duration, error)) ([]sample, error) {
	return j.each(parts, func(count int) (time.Duration, error) { return do(parts, count) })
}

func (j job) each(parts int, do func(each int) (time.Duration, error)) ([]sample, error) {
	if _, err := do(max(j.elements()/warmUp/parts, 1)); err != nil {
		return nil, err
	}
	count := max(j.elements()/parts, 1)
	took, err := do(count)
	n := count * parts
	return []sample{{Variant: "time", Unit: "ns", N: n, Value: nanosEach(took, n)}}, err
}

func nanosEach(took time.Duration, n int) float64 {
	return float64(took) / float64(n)
}

// The number, unless it is 0, which stands for none.
func or(number, otherwise int) int {
	if number == 0 {
		return otherwise
	}
	return number
}

// What is wrong when a workload has not done what it was told to do.
func expect(what string, got, want int) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s: %d; it has to be %d", what, got, want)
}

func sumBelow(count int) int {
	return count * (count - 1) / 2
}
