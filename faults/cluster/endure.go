//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/plot"
)

// The endurance run breaks nothing: each minute one of two consumers is restarted, in turn, and
// the third, which runs from begin to end and is measured, gets other bounds for its workers.

// rescaled are the bounds that the measured consumer has in turn. The fewer workers can do
// about 360 messages a second.
func rescaled() [2]container.Workers {
	return [2]container.Workers{{Min: 2, Max: 4}, {Min: 1, Max: 2}}
}

const enduredEvery = time.Minute

// endure lets the crew work until the time is over.
func (n *nemesis) endure(ctx context.Context, lasts time.Duration) error {
	for until, turn := time.Now().Add(lasts), 0; time.Now().Before(until); turn++ {
		if err := pause(ctx, enduredEvery); err != nil {
			return err
		}
		if err := n.crew.member[0].Process.Signal(syscall.SIGUSR1); err != nil {
			return fmt.Errorf("%s has ended by itself, see its log: %w", n.crew.name[0], err)
		}
		i := 1 + turn%(consumers-1)
		if err := errors.Join(n.crew.stop(i), n.crew.launch(ctx, i)); err != nil {
			return err
		}
	}
	return nil
}

// rescale changes the bounds whenever the process is told to.
func rescale(ctx context.Context, c *container.ListenerContainer) error {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1)
	defer signal.Stop(told)
	for turn := 1; ; turn++ {
		select {
		case <-told:
			next := rescaled()[turn%2]
			if err := c.Scale(next.Min, next.Max); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// flat says whether the measured consumer and the queue took no more at the end than at the
// beginning, and draws both.
func flat(o options, watched string) error {
	process, err := readSamples(samplesOf(o.folder, watched))
	if err != nil {
		return err
	}
	queue, err := readSamples(samplesOf(o.folder, "queue"))
	if err != nil {
		return err
	}
	var failed error
	picture := plot.Picture{Title: fmt.Sprintf("An endurance run on %s", o.on), Y: "times the second quarter", Length: o.lasts.Seconds()}
	colors := []string{plot.Blue, plot.Orange, plot.Grey, plot.Red}
	for i, g := range gauges() {
		all := process
		if i == len(gauges())-1 {
			all = queue
		}
		if len(all) < 8 {
			return fmt.Errorf("%s: %d samples are too few", g.name, len(all))
		}
		second, last := g.quarters(all)
		if second == 0 && last == 0 { // Kafka has no memory for a topic
			continue
		}
		fmt.Printf("%-20s second quarter %14.0f, last quarter %14.0f\n", g.name, second, last)
		if last > second*g.times+g.more {
			failed = errors.Join(failed, fmt.Errorf("%s grew from %.0f to %.0f", g.name, second, last))
		}
		picture.Lines = append(picture.Lines, plot.Line{Name: g.name, Color: colors[i], At: func(t float64) float64 {
			at := all[0].At.Add(time.Duration(t * float64(time.Second)))
			for k, s := range all {
				if !s.At.Before(at) || k == len(all)-1 {
					return g.of(s) / second
				}
			}
			return 0
		}})
	}
	if o.picture != "" {
		failed = errors.Join(failed, os.WriteFile(filepath.Clean(o.picture), []byte(picture.SVG()), 0o644)) //nolint:gosec // of the documentation
	}
	return failed
}

// watchQueue samples the broker's memory for the queue.
func watchQueue(ctx context.Context, o options, b broker) error {
	return takeSamples(ctx, samplesOf(o.folder, "queue"), func(s *sample) (err error) {
		s.Queue, err = b.memory(ctx)
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
}
