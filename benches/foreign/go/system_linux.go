package main

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// The bytes of this process that are in memory.
func resident() (int, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, pages int
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0, fmt.Errorf("/proc/self/statm: %w", err)
	}
	return pages * os.Getpagesize(), nil
}

// The processor time that all threads of this process have used.
func processorTime() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, err
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// How often the threads of this process have given up a processor of their own accord.
func switches() (int64, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return int64(used.Nvcsw), err
}

// Blocks the thread, of which the scheduler knows no more than that it is in a system call.
func blockThread(long time.Duration) error {
	left := syscall.NsecToTimespec(int64(long))
	for {
		if err := syscall.Nanosleep(&left, &left); err != syscall.EINTR {
			return err
		}
	}
}
