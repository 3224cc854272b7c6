package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
)

// cost is what something takes of this process.
type cost struct {
	bytes      int64 // heap after a collection, and stacks
	goroutines int
	idle       float64 // CPU in percent of a core while nothing happens
}

func (c cost) minus(d cost) cost {
	return cost{c.bytes - d.bytes, c.goroutines - d.goroutines, c.idle - d.idle}
}

// costNow watches the process for the time; zero asks for memory only.
func costNow(watched time.Duration) (c cost) {
	if watched > 0 {
		w := startWatch()
		<-time.After(watched)
		s := w.stop(1)
		c.idle = 100 * s.cpu.Seconds() / s.wall.Seconds()
	}
	c.bytes, c.goroutines = int64(heap()), runtime.NumGoroutine() //nolint:gosec // no such heap
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.bytes += int64(m.StackInuse) //nolint:gosec // no such stacks
	return c
}

// dimension is something that a process may have many of. Its cost is measured at
// three sizes: the line through the first and the last is the formula, the one in
// between shows whether it is one.
type dimension struct {
	what    string
	sizes   [3]int
	measure func(n int) (cost, error)
}

// scaled is a dimension with what was measured.
type scaled struct {
	dimension
	costs [3]cost
}

// each is the cost of one more, and base what is there without any.
func (s scaled) each(f func(cost) float64) (per, base float64) {
	first, last := f(s.costs[0]), f(s.costs[2])
	per = (last - first) / float64(s.sizes[2]-s.sizes[0])
	return per, first - per*float64(s.sizes[0])
}

func memoryOf(c cost) float64     { return float64(c.bytes) }
func goroutinesOf(c cost) float64 { return float64(c.goroutines) }
func idleOf(c cost) float64       { return c.idle }

const idleWatched = 4 * time.Second

// scale measures what a process of many partitions, queues, lanes and deliveries costs,
// up to what this machine does in minutes, and gives the formula for more.
func scale(o options, r *report) error {
	var all []scaled
	for _, part := range []func(o options) ([]dimension, func(), error){scaleHeld, scaleIdle} {
		dims, stop, err := part(o)
		if err != nil {
			return err
		}
		for _, d := range dims {
			s := scaled{dimension: d}
			for i, n := range d.sizes {
				if s.costs[i], err = d.measure(n); err != nil {
					stop()
					return fmt.Errorf("%s, %d: %w", d.what, n, err)
				}
			}
			fmt.Fprint(os.Stderr, ".")
			all = append(all, s)
		}
		stop()
	}
	scaleTables(r, all)
	return scaleBusy(o, r)
}

func scaleTables(r *report, all []scaled) {
	var measured, formula [][]string
	for _, s := range all {
		per, base := s.each(memoryOf)
		of := func(f func(c cost) string) string {
			return f(s.costs[0]) + " / " + f(s.costs[1]) + " / " + f(s.costs[2])
		}
		middle := memoryOf(s.costs[1]) / (base + per*float64(s.sizes[1]))
		measured = append(measured, []string{s.what, count(s.sizes[0]) + " / " + count(s.sizes[1]) + " / " + count(s.sizes[2]),
			of(func(c cost) string { return megabytes(memoryOf(c)) }), of(func(c cost) string { return count(c.goroutines) }),
			of(func(c cost) string { return percent(c.idle) }), fmt.Sprintf("%+d %%", int(math.Round(100*(middle-1))))})
		more, _ := s.each(goroutinesOf)
		cpu, _ := s.each(idleOf)
		n := 10 * s.sizes[2]
		formula = append(formula, []string{s.what, megabytes(base), megabytes(1000 * per), fmt.Sprintf("%.0f", 1000*more), percent(1000 * cpu),
			count(n) + ": " + megabytes(base+per*float64(n)) + " MB"})
	}
	r.table("Measured at three sizes: heap and stacks in MB, goroutines, idle CPU in percent of a core, and how far the middle is from the line through the others",
		[]string{"what", "how many", "MB", "goroutines", "idle CPU", "middle"}, measured)
	r.table("The formula: the fixed cost, the cost of 1,000 more, and ten times the largest that was measured",
		[]string{"what", "once, MB", "MB", "goroutines", "idle CPU", "extrapolated"}, formula)
}

// percent leaves out what is only noise.
func percent(v float64) string { return strconv.FormatFloat(max(v, 0), 'f', 1, 64) }

// sizes are three that grow, whatever the scale.
func (o options) sizes(first, second, third int) [3]int {
	a := o.count(first)
	b := max(o.count(second), 2*a)
	return [3]int{a, b, max(o.count(third), 2*b)}
}

func megabytes(b float64) string { return strconv.FormatFloat(b/1e6, 'f', 2, 64) }

// count is n with commas.
func count(n int) string {
	digits := strconv.Itoa(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// scaleBusy is what a message costs beside many lanes and partitions.
func scaleBusy(o options, r *report) error {
	n := o.count(500_000)
	var rows [][]string
	for _, keys := range []int{10, 10_000, 100_000} {
		var per []float64
		for range min(o.rounds, 3) {
			s, err := hotContainer(n, keys, 10, true, chain(&offered{}, zap.NewNop())...)
			if err != nil {
				return err
			}
			per = append(per, s.cpuPer())
		}
		rows = append(rows, []string{"in memory, by key, keys", count(keys), spread(per, "%.0f")})
	}
	k, stop, err := servedKafka("kfake")
	if err != nil {
		return err
	}
	defer stop()
	for _, partitions := range []int32{1, 100, 1000} {
		t, err := k.filled(partitions, n/2)
		if err != nil {
			return err
		}
		var per []float64
		for range min(o.rounds, 3) {
			s, err := kafkaJob{t: t, n: n / 2, workers: 10}.longshore()
			if err != nil {
				return err
			}
			per = append(per, s.cpuPer())
		}
		rows = append(rows, []string{"kfake, by key, partitions", count(int(partitions)), spread(per, "%.0f")})
	}
	r.table("CPU of a message with a handler that does nothing, 10 workers", []string{"what", "how many", "ns min / median / max"}, rows)
	return nil
}
