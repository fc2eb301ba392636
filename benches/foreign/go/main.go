// Runs one workload once, in Go: the same workloads, arguments and output as `ganger-workload`,
// the program of the peers in Rust.
//
//	main.go      the command line, and what is printed
//	measure.go   what a job is: how often what is done, warm-up, which workload is in which function
//	gate.go      many hits, one wake-up
//	latency.go   many times, and the few figures that say what they are like
//	spawn.go     W1 spawn_external, W2 skynet
//	yield.go     W3a yield_1, W3b yield_100
//	pair.go      W4 ping_pong, W4b ping_pong_1000
//	ring.go      W5 ring_1, W5b ring_100
//	fan.go       W6 fan_in, W7 fan_out
//	typed.go     W4t, W5bt, W6t, W7t: the same with a message of 40 bytes
//	idle.go      W8 memory_idle, W10 wake_latency, W11 idle_cpu
//	command.go   W9 command, W9ask command_ask
//	stuck.go     W12 stuck_workers, W12cpu stuck_workers_cpu
//	race.go      W13 fairness
//	woken.go     W13b woken_beside_busy, W13c woken_from_outside, W13d woken_by_herald
//	timers.go    W14 to W17: timer_churn, timer_fire, timer_lateness, timers_idle
//	system_*.go  memory and processor time of this process, a sleep that blocks the thread
//
// A process is a goroutine; its mailbox is a channel with room for all that it has to hold. The main
// goroutine keeps its thread for itself, which so is no worker.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// What is written for each metric, as one line of JSON.
type sample struct {
	Workload  string      `json:"workload"`
	Peer      string      `json:"peer"`
	Variant   string      `json:"variant"`
	Unit      string      `json:"unit"`
	N         int         `json:"n"`
	Value     float64     `json:"value"`
	P50       *float64    `json:"p50,omitempty"`
	P99       *float64    `json:"p99,omitempty"`
	Max       *float64    `json:"max,omitempty"`
	Histogram [][2]uint64 `json:"histogram,omitempty"`
}

// What Go has not, or this system does not tell; the text says why.
type missing string

func (why missing) Error() string { return string(why) }

func main() {
	runtime.LockOSThread()
	err := run(os.Args[1:])
	var why missing
	switch {
	case errors.As(err, &why):
		fmt.Fprintln(os.Stderr, why)
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var j job
	flags := flag.NewFlagSet("ganger-workload", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	count := func(into *int, name, usage string) {
		flags.Func(name, usage, func(text string) (err error) {
			if *into, err = strconv.Atoi(text); err != nil || *into < 1 {
				return errors.New("a number is needed, 1 at least")
			}
			return nil
		})
	}
	flags.StringVar(&j.id, "workload", "", "the workload, `W1` to W17")
	peer := flags.String("peer", "go", "who runs it: `go`")
	workers := 2
	count(&workers, "workers", "how many threads run goroutines: `N`, or 2")
	size := flags.String("size", "full", "how much there is to do: `full` or quick")
	count(&j.processes, "processes", "`N` processes that there are at once")
	count(&j.producers, "producers", "`N` producers, in workloads that have producers")
	count(&j.rounds, "rounds", "`N` elements in place of those that belong to the size")
	list := flags.Bool("list", false, "print what this program runs, and run nothing")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return nil
	} else if err != nil {
		return err
	}
	if *list {
		for _, w := range workloads {
			if w.run != nil {
				fmt.Println(w.id, "go")
			}
		}
		return nil
	}
	j.quick = *size == "quick"
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument `%s`", flags.Arg(0))
	case *peer != "go":
		return fmt.Errorf("there is no peer `%s` here; there is go", *peer)
	case *size != "full" && *size != "quick":
		return fmt.Errorf("there is no size `%s`; there are full, quick", *size)
	}
	at := slices.IndexFunc(workloads, func(w workload) bool { return strings.EqualFold(w.id, j.id) })
	if at < 0 {
		return fmt.Errorf("there is no workload `%s`; there are %s", j.id, known())
	}
	j.workload = workloads[at]
	if j.run == nil {
		return missing(j.missing)
	}
	runtime.GOMAXPROCS(workers)
	samples, err := j.run(j)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, s := range samples {
		s.Workload, s.Peer = j.workload.id, "go"
		if err := out.Encode(s); err != nil {
			return err
		}
	}
	return nil
}

func known() string {
	var ids []string
	for _, w := range workloads {
		ids = append(ids, w.id)
	}
	return strings.Join(ids, ", ")
}
