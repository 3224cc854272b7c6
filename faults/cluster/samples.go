//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"time"
)

// sample is what a consuming process, or the queue, takes at one time.
type sample struct {
	At         time.Time `json:"at"`
	Heap       float64   `json:"heap"`       // bytes that lived at the last collection
	Goroutines float64   `json:"goroutines"` // of the process
	Files      float64   `json:"files"`      // descriptors that are open
	Queue      float64   `json:"queue"`      // bytes of memory that the broker has for it
}

const sampleEvery = 5 * time.Second

// takeSamples writes what take returns into a file until ctx ends.
func takeSamples(ctx context.Context, path string, take func(*sample) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := json.NewEncoder(f)
	for {
		one := sample{At: time.Now()}
		if err := take(&one); err != nil {
			return err
		}
		if err := out.Encode(one); err != nil {
			return err
		}
		if pause(ctx, sampleEvery) != nil {
			return nil
		}
	}
}

// ofThisProcess fills in what a process knows of itself.
func ofThisProcess(s *sample) error {
	read := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/sched/goroutines:goroutines"}}
	metrics.Read(read)
	s.Heap, s.Goroutines = float64(read[0].Value.Uint64()), float64(read[1].Value.Uint64())
	files, err := os.ReadDir("/proc/self/fd")
	s.Files = float64(len(files))
	return err
}

func samplesOf(folder, name string) string { return filepath.Join(folder, name+".samples") }

func readSamples(path string) (all []sample, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var one sample
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, lines.Err()
}

// gauge is one number of the samples, and how much more of it the last quarter of the time may
// have than the second: the first one is to warm up.
type gauge struct {
	name  string
	of    func(sample) float64
	times float64
	more  float64
}

func gauges() []gauge {
	return []gauge{
		{"live heap", func(s sample) float64 { return s.Heap }, 1.25, 2 << 20},
		{"goroutines", func(s sample) float64 { return s.Goroutines }, 1, 4},
		{"descriptors", func(s sample) float64 { return s.Files }, 1, 4},
		{"memory of the queue", func(s sample) float64 { return s.Queue }, 1.5, 1 << 20},
	}
}

// quarters are the medians of the second and of the last quarter.
func (g gauge) quarters(all []sample) (second, last float64) {
	n := len(all)
	return g.median(all[n/4 : n/2]), g.median(all[n*3/4:])
}

func (g gauge) median(part []sample) float64 {
	vs := make([]float64, len(part))
	for i, s := range part {
		vs[i] = g.of(s)
	}
	slices.Sort(vs)
	return vs[len(vs)/2]
}
