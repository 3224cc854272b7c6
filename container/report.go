package container

import (
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
)

// Report says how a drain went.
type Report struct {
	Container string        // its name
	Started   time.Time     // when Stop was called
	Took      time.Duration // until everything was closed
	Budget    time.Duration // DrainTimeout of this drain

	Completed int // done, dead-lettered or discarded while draining; those before are in Stats
	Released  int // given back: not started, cancelled by the drain, or failed meanwhile
	Abandoned int // still with their handlers when the time was over; the broker has them back
	Unflushed int // accepted settlements that the broker did not confirm
	Lost      int // taken back by the broker meanwhile
	Repeats   int // done, but will be handled again: the broker does not know that all of them are done
	Delayed   int // given back earlier with a delay, and not due yet: they wait at the broker

	// AbandonedIDs and UnflushedIDs name up to ten of them.
	AbandonedIDs, UnflushedIDs []string
	// Err is what flushing or closing said.
	Err error
}

// Bad tells whether anything was abandoned or unflushed.
func (r *Report) Bad() bool { return r.Abandoned > 0 || r.Unflushed > 0 }

// String is the line that people see.
func (r *Report) String() string {
	s := fmt.Sprintf("drained in %.2f s of %v: completed while draining %d, released %d, abandoned %d, unflushed %d",
		r.Took.Seconds(), round(r.Budget), r.Completed, r.Released, r.Abandoned, r.Unflushed)
	if r.Lost > 0 {
		s += fmt.Sprintf(", lost %d", r.Lost)
	}
	if r.Repeats > 0 {
		s += fmt.Sprintf("; %d that are done will be handled again", r.Repeats)
	}
	if r.Delayed > 0 {
		s += fmt.Sprintf("; %d more wait at the broker for their next attempt", r.Delayed)
	}
	return s
}

func (r *Report) fields() []zap.Field {
	fs := []zap.Field{zap.Duration("took", r.Took), zap.Int("completed", r.Completed), zap.Int("released", r.Released),
		zap.Int("abandoned", r.Abandoned), zap.Int("unflushed", r.Unflushed), zap.Int("lost", r.Lost), zap.Int("delayed", r.Delayed), zap.Int("repeats", r.Repeats)}
	if len(r.AbandonedIDs) > 0 {
		fs = append(fs, zap.Strings("abandoned_ids", r.AbandonedIDs))
	}
	if len(r.UnflushedIDs) > 0 {
		fs = append(fs, zap.Strings("unflushed_ids", r.UnflushedIDs))
	}
	return fs
}

// DrainError is what Stop returns when something was left behind.
type DrainError struct {
	Report *Report       // what was left behind
	wanted time.Duration // the configured DrainTimeout
}

// Error names what was left behind.
func (e *DrainError) Error() string { return e.error().Error() }

// error is the same with its code, without the cause, which the report names.
func (e *DrainError) error() *longshore.Error {
	var b strings.Builder
	fmt.Fprintf(&b, "stop container %q: %v", e.Report.Container, e.Report)
	if ids := append(append([]string{}, e.Report.AbandonedIDs...), e.Report.UnflushedIDs...); len(ids) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(ids, ", "))
	}
	return &longshore.Error{Code: longshore.CodeDrain, Source: e.Report.Container, Op: b.String(), Hint: e.hint()}
}

func (e *DrainError) hint() string {
	var b strings.Builder
	b.WriteString("what was left comes back from the broker: ")
	switch {
	case e.Report.Abandoned == 0 && e.Report.Budget < e.wanted*9/10:
		fmt.Fprintf(&b, "the broker did not confirm within a stop that was cut short of DrainTimeout %v, by its context or a StopTimeout: check the broker, or give the stop more time", round(e.wanted))
	case e.Report.Budget < e.wanted*9/10:
		fmt.Fprintf(&b, "the stop was cut short of DrainTimeout %v, by its context or a StopTimeout: give it more, or let handlers obey their context", round(e.wanted))
	case e.Report.Abandoned == 0:
		b.WriteString("the broker did not confirm in time: check the broker, or raise CancelGrace")
	default:
		b.WriteString("raise DrainTimeout, or let handlers obey their context")
	}
	return b.String()
}

// Unwrap returns what flushing or closing said.
func (e *DrainError) Unwrap() error { return e.Report.Err }

// Is makes errors.Is(err, longshore.CodeDrain) true.
func (e *DrainError) Is(target error) bool { return target == error(longshore.CodeDrain) }

// As gives errors.As a *longshore.Error with [longshore.CodeDrain] and the hint, so that
// logs, metrics and exit texts show that code and not the one of its cause.
func (e *DrainError) As(target any) bool {
	if to, ok := target.(**longshore.Error); ok {
		*to = e.error()
		return true
	}
	return false
}

func round(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
