package main

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// How many buckets a histogram has at most.
const buckets = 100

// Times in no order.
type latencies []time.Duration

// The sample whose value is that percentile, with all that is said of latencies. Sorts them.
func (l latencies) sample(
	variant string, percent float64, unit string, of time.Duration, n int,
) sample {
	slices.Sort(l)
	in := func(percent float64) *float64 {
		value := float64(l.percentile(percent)) / float64(of)
		return &value
	}
	return sample{
		Variant: variant, Unit: unit, N: n, Value: *in(percent),
		P50: in(50), P99: in(99), Max: in(100), Histogram: l.histogram(),
	}
}

// What so many in a hundred are at most. The times are sorted.
func (l latencies) percentile(percent float64) time.Duration {
	rank := int(math.Ceil(percent / 100 * float64(len(l))))
	return l[max(rank, 1)-1]
}

// Upper bounds in nanoseconds, each with how many are in its bucket, as fine as there is room for.
// The times are sorted.
func (l latencies) histogram() [][2]uint64 {
	for precision := 7; ; precision-- {
		var out [][2]uint64
		for _, t := range l {
			bound := upper(uint64(max(t, 1)), precision)
			if last := len(out) - 1; last >= 0 && out[last][0] == bound {
				out[last][1]++
			} else if len(out) < buckets {
				out = append(out, [2]uint64{bound, 1})
			} else {
				out = nil
				break
			}
		}
		if out != nil || precision == 0 {
			return out
		}
	}
}

// The largest value with the same first bits: that many after the first one.
func upper(value uint64, precision int) uint64 {
	rest := max(bits.Len64(value)-1-precision, 0)
	return value | (1<<rest - 1)
}
