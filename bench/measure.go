package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// sample is one run of one variant.
type sample struct {
	n      int
	wall   time.Duration
	cpu    time.Duration // user and system time of this process
	allocs uint64

	p50, p99 time.Duration // of one message, where that is measured
}

func (s sample) rate() float64     { return float64(s.n) / s.wall.Seconds() }
func (s sample) cpuPer() float64   { return float64(s.cpu.Nanoseconds()) / float64(s.n) }
func (s sample) wallPer() float64  { return float64(s.wall.Nanoseconds()) / float64(s.n) }
func (s sample) allocPer() float64 { return float64(s.allocs) / float64(s.n) }

// stopwatch starts after a garbage collection, so that one variant does not pay
// for another's litter.
type stopwatch struct {
	begin  time.Time
	cpu    time.Duration
	allocs uint64
}

func startWatch() stopwatch {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return stopwatch{cpu: processCPU(), allocs: m.Mallocs, begin: time.Now()}
}

func (w stopwatch) stop(n int) sample {
	s := sample{n: n, wall: time.Since(w.begin), cpu: processCPU() - w.cpu}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.allocs = m.Mallocs - w.allocs
	return s
}

func processCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// variant is one way to do the same work.
type variant struct {
	name string
	run  func() (sample, error)
}

// interleave runs every variant once in each round, rotating the order. The
// result is indexed by variant, then by round.
func interleave(rounds int, vs []variant) ([][]sample, error) {
	out := make([][]sample, len(vs))
	for r := range rounds {
		for k := range vs {
			i := (k + r) % len(vs)
			s, err := vs[i].run()
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", vs[i].name, r+1, err)
			}
			out[i] = append(out[i], s)
			fmt.Fprint(os.Stderr, ".")
		}
	}
	fmt.Fprintln(os.Stderr)
	return out, nil
}

func median[T cmp.Ordered](vs []T) T {
	s := slices.Sorted(slices.Values(vs))
	return s[len(s)/2]
}

func each(ss []sample, f func(sample) float64) []float64 {
	out := make([]float64, len(ss))
	for i, s := range ss {
		out[i] = f(s)
	}
	return out
}

// ratios returns f(a)/f(b) within each round.
func ratios(a, b []sample, f func(sample) float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = f(a[i]) / f(b[i])
	}
	return out
}

func differences(a, b []sample, f func(sample) float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = f(a[i]) - f(b[i])
	}
	return out
}
