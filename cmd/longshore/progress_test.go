package main

import (
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/cli"
)

// The bar of long work says how far it is, how fast in the last ten seconds, and how long the
// rest takes at that rate.
func TestProgressHasRateAndTimeLeft(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := newProgress(&cli.Printer{Options: cli.Options{Quiet: true}})
	p.now = func() time.Time { return at }
	p.samples = []sample{{at: at}}
	for _, step := range []struct {
		after time.Duration
		n     int
		total int64
		want  string
	}{
		{0, 0, 1000, "▕        ▏ 0/1000  0/s  ETA –"},
		{5 * time.Second, 250, 1000, "▕██      ▏ 250/1000  50/s  ETA 15s"},
		{5 * time.Second, 500, 1000, "▕████    ▏ 500/1000  50/s  ETA 10s"},
		{9 * time.Second, 509, 1000, "▕████    ▏ 509/1000  1.0/s  ETA 8m11s"}, // slower: the seconds before do not hide it
		{9 * time.Second, 518, 1000, "▕████    ▏ 518/1000  1.0/s  ETA 8m2s"},
		{time.Second, 1000, 1000, "▕████████▏ 1000/1000  49/s  ETA 0s"},
		{time.Second, 1100, 1000, "1100  291/s  ETA –"}, // more than was known
	} {
		at = at.Add(step.after)
		p.show(step.n, step.total)
		if got := p.line(step.n, step.total); got != step.want {
			t.Errorf("after %d of %d: %q, want %q", step.n, step.total, got, step.want)
		}
	}
}
