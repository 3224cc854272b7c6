package breaker

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/internal/logs"
	"github.com/longshore-go/longshore/internal/problem"
)

// Config says when a breaker opens and how it comes back. The zero value works.
type Config struct {
	// Name is what stands behind it, for logs and Stats. Zero: "dependency".
	Name string

	// Ratio is the share of failures in Window at which it opens, from MinRequests
	// finished calls on. Zero: 0.5 of at least 10 in 30 s.
	Ratio       float64
	MinRequests int
	Window      time.Duration
	// Consecutive failures open it whatever the ratio. Zero: 10. −1: never.
	Consecutive int

	// OpenFor is how long it stays open before the first trial, doubled with each
	// that fails up to OpenMax. Zero: 5 s and 1 min.
	OpenFor, OpenMax time.Duration
	// Probe asks whether it works again; nil is yes. Without it messages are the
	// trial. Its context ends after ProbeTimeout, zero: 10 s.
	Probe        func(ctx context.Context) error
	ProbeTimeout time.Duration
	// Trials is how many probes, or messages, must work in a row. Zero: 1.
	Trials int
	// Ramp is the time over which the handlers that run at once rise from one to as
	// many as there are after it closed. Zero: 10 s. −1: none.
	Ramp time.Duration

	// IsFailure says whether a handler's error counts. nil: as the package says. It
	// is not asked about nil, longshore.Release, and what was cut short.
	IsFailure func(err error) bool
	// Logger gets a warning when the breaker opens and one when it closes. nil: nothing.
	Logger *zap.Logger
}

func (c *Config) check() error {
	l := &problem.List{Op: fmt.Sprintf("make a breaker for %q", c.Name), Source: c.Name}
	if !(c.Ratio >= 0 && c.Ratio <= 1) {
		l.Range("Ratio", c.Ratio, "more than 0 and at most 1, or 0 for the default, 0.5")
	}
	for field, n := range map[string]int{"MinRequests": c.MinRequests, "Trials": c.Trials} {
		if n < 0 {
			l.Range(field, n, "positive, or 0 for the default")
		}
	}
	if c.Consecutive < -1 {
		l.Range("Consecutive", c.Consecutive, "positive, or 0 for the default, 10{?, or -1 for never}")
	}
	for field, d := range map[string]time.Duration{"Window": c.Window, "OpenFor": c.OpenFor, "OpenMax": c.OpenMax, "ProbeTimeout": c.ProbeTimeout} {
		if d < 0 {
			l.Range(field, d, "positive, or 0 for the default")
		}
	}
	c.fill()
	if c.OpenMax < c.OpenFor {
		l.Range("OpenMax", c.OpenMax, "at least {OpenFor}, which is %v", c.OpenFor)
	}
	return l.Err()
}

func (c *Config) fill() {
	or(&c.Name, "dependency")
	or(&c.Ratio, 0.5)
	or(&c.MinRequests, 10)
	or(&c.Window, 30*time.Second)
	or(&c.Consecutive, 10)
	or(&c.OpenFor, 5*time.Second)
	or(&c.OpenMax, max(time.Minute, c.OpenFor))
	or(&c.ProbeTimeout, 10*time.Second)
	or(&c.Trials, 1)
	or(&c.Ramp, 10*time.Second)
	c.Logger = logs.Of(c.Logger)
}

// or sets the default where nothing is set.
func or[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
