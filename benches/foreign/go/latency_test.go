package main

import (
	"testing"
	"time"
)

func TestFiguresOfLatenciesAreThose(t *testing.T) {
	var times latencies
	for us := 10_000; us > 0; us-- {
		times = append(times, time.Duration(us)*time.Microsecond)
	}
	s := times.sample("p99", 99, "us", time.Microsecond, 1)
	if s.Value != 9_900 || *s.P50 != 5_000 || *s.P99 != 9_900 || *s.Max != 10_000 {
		t.Errorf("value %v, p50 %v, p99 %v, max %v", s.Value, *s.P50, *s.P99, *s.Max)
	}
	sum, before := uint64(0), uint64(0)
	for _, bucket := range s.Histogram {
		if bucket[0] <= before {
			t.Errorf("%d after %d", bucket[0], before)
		}
		sum, before = sum+bucket[1], bucket[0]
	}
	size := len(s.Histogram)
	if sum != 10_000 || before < 10_000_000 || size > buckets || size < buckets/4 {
		t.Errorf("%d of them in %d buckets up to %d", sum, size, before)
	}
}

func TestOneLatencyIsOneBucket(t *testing.T) {
	s := latencies{0}.sample("p50", 50, "us", time.Microsecond, 1)
	if s.Value != 0 || len(s.Histogram) != 1 || s.Histogram[0] != [2]uint64{1, 1} {
		t.Errorf("%+v", s)
	}
}

func TestValuesInABucketHaveItsBound(t *testing.T) {
	for _, c := range []struct {
		value     uint64
		precision int
		bound     uint64
	}{{5, 7, 5}, {255, 7, 255}, {256, 7, 257}, {1000, 0, 1023}, {1000, 1, 1023}, {700, 1, 767}} {
		if got := upper(c.value, c.precision); got != c.bound {
			t.Errorf("%d with %d bits: %d, not %d", c.value, c.precision, got, c.bound)
		}
	}
}

func TestElementsAreThoseOfTheSizeUnlessTold(t *testing.T) {
	j := job{workload: workloads[0]}
	if j.elements() != 1_000_000 {
		t.Error(j.elements())
	}
	j.quick, j.processes = true, 3
	if j.elements() != 50_000 || j.withProcesses().elements() != 3 {
		t.Error(j.elements(), j.withProcesses().elements())
	}
	for elements, levels := range map[int]int{10: 0, 11: 1, 1_110: 2, 1_111: 3, 1_111_111: 6} {
		j.rounds = elements
		if j.levels() != levels {
			t.Errorf("%d levels of %d processes", j.levels(), elements)
		}
	}
}
