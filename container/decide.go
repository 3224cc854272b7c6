package container

import (
	"errors"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/backoff"
)

// judgement is a verdict with the facts that carrying it out needs.
type judgement struct {
	verdict longshore.Verdict // what becomes of the delivery
	delay   time.Duration     // until the next attempt, for a retry or a release
	err     error             // why; nil after a success
	end     time.Time         // when the handler returned
	took    time.Duration     // how long the call took, without Delivery.Wait

	returned  bool // the broker has the delivery back: a drain reports it as released
	unstarted bool // no handler saw it, so it counts as no call
}

// final reports whether the message is finished: it will not be delivered again.
func (j *judgement) final() bool {
	return j.verdict == longshore.VerdictAck || j.verdict == longshore.VerdictReject || j.verdict == longshore.VerdictDiscard
}

// comesBack reports whether the message is to be delivered again.
func (j *judgement) comesBack() bool {
	return j.verdict == longshore.VerdictRetry || j.verdict == longshore.VerdictRelease
}

// rules are the settings that a decision depends on.
type rules struct {
	attempts int               // the attempt that is the last
	retry    backoff.Policy    // delay before the next attempt
	classify func(error) error // may turn an error into a verdict; nil: none does
}

// attemptFacts are what a decision has to know of the delivery.
type attemptFacts struct {
	attempt  int     // which one just ended
	releases int     // how often it was released before, for the delay
	stopped  bool    // the drain deadline has passed and ended the handlers' contexts
	random   float64 // in [0, 1): spreads the delay
}

// decide turns a handler's error into a verdict. No other code does.
func (r *rules) decide(f attemptFacts, err error) judgement {
	v, delay := longshore.VerdictOf(err)
	if v == longshore.VerdictNone && !f.stopped && r.classify != nil {
		if mapped := r.classify(err); mapped != nil {
			if v, delay = longshore.VerdictOf(mapped); v != longshore.VerdictNone {
				err = mapped
			}
		}
	}
	j := judgement{verdict: v, delay: delay, err: err}
	switch v {
	case longshore.VerdictNone:
		// A stop is neither success nor failure. A handler may turn its ended context into
		// any error, so after the deadline every error but a panic counts as a release.
		if f.stopped && !isPanic(err) {
			j.verdict = longshore.VerdictRelease
			return j
		}
		j.verdict = longshore.VerdictRetry
	case longshore.VerdictRelease:
		switch {
		case f.stopped: // another instance may take it at once
			j.delay = 0
		case delay <= 0:
			j.delay = r.retry.Delay(f.releases+1, f.random)
		}
	}
	if j.verdict != longshore.VerdictRetry {
		return j
	}
	if f.attempt >= r.attempts {
		j.verdict = longshore.VerdictReject
	} else if j.delay <= 0 {
		j.delay = r.retry.Delay(f.attempt, f.random)
	}
	return j
}

func isPanic(err error) bool { return errors.Is(err, longshore.CodePanic) }
