//go:build !linux

package main

import "time"

const notHere = missing("not measured here: needs Linux")

func resident() (int, error) { return 0, notHere }

func processorTime() (time.Duration, error) { return 0, notHere }

func switches() (int64, error) { return 0, notHere }

func blockThread(time.Duration) error { return notHere }
