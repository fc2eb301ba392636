// Go's channels, in the workloads of `benches/src/channels`: prints nanoseconds for each value.
//
//	channels SENDERS RECEIVERS CAPACITY VALUES
//
// With no receivers, each of four senders has a channel of its own, and one goroutine receives by a
// select of these.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

func main() {
	runtime.GOMAXPROCS(2)
	var n [4]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(os.Args[i+1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	senders, receivers, capacity, values := n[0], n[1], n[2], n[3]
	run(senders, receivers, capacity, values/20)
	took := run(senders, receivers, capacity, values)
	fmt.Println(float64(took.Nanoseconds()) / float64(values/senders*senders))
}

func run(senders, receivers, capacity, values int) time.Duration {
	each := values / senders
	start := time.Now()
	var sum uint64
	if receivers == 0 {
		sum = selectOfFour(capacity, each)
	} else {
		sum = stream(senders, receivers, capacity, each)
	}
	took := time.Since(start)
	if sum != uint64(each)*uint64(each-1)/2*uint64(senders) {
		fmt.Fprintln(os.Stderr, "wrong sum")
		os.Exit(1)
	}
	return took
}

func send(into chan<- uint64, each int) {
	for value := range each {
		into <- uint64(value)
	}
}

func stream(senders, receivers, capacity, each int) uint64 {
	values := make(chan uint64, capacity)
	sums := make(chan uint64, receivers)
	for range receivers {
		go func() {
			var sum uint64
			for value := range values {
				sum += value
			}
			sums <- sum
		}()
	}
	var sending sync.WaitGroup
	for range senders {
		sending.Add(1)
		go func() {
			defer sending.Done()
			send(values, each)
		}()
	}
	sending.Wait()
	close(values)
	var sum uint64
	for range receivers {
		sum += <-sums
	}
	return sum
}

func selectOfFour(capacity, each int) uint64 {
	var all [4]chan uint64
	for i := range all {
		all[i] = make(chan uint64, capacity)
		go func() {
			send(all[i], each)
			close(all[i])
		}()
	}
	sums := make(chan uint64)
	go func() {
		var sum, value uint64
		var ok bool
		for open := len(all); open > 0; {
			var from *chan uint64
			select {
			case value, ok = <-all[0]:
				from = &all[0]
			case value, ok = <-all[1]:
				from = &all[1]
			case value, ok = <-all[2]:
				from = &all[2]
			case value, ok = <-all[3]:
				from = &all[3]
			}
			if !ok {
				*from = nil
				open--
			}
			sum += value
		}
		sums <- sum
	}()
	return <-sums
}
