package container

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/backoff"
)

// The table of decisions: what becomes of a delivery, by the handler's error, its attempt
// and whether the drain deadline has passed.
func TestDecide(t *testing.T) {
	plain := errors.New("down")
	panicked := &longshore.Error{Code: longshore.CodePanic, Err: plain}
	reason := errors.New("of no use")
	const s = time.Second
	for _, tc := range []struct {
		name     string
		err      error
		attempt  int
		releases int
		stopped  bool
		classify func(error) error
		want     longshore.Verdict
		delay    time.Duration
	}{
		{name: "success", want: longshore.VerdictAck},
		{name: "first failure", err: plain, want: longshore.VerdictRetry, delay: s},
		{name: "second failure", err: plain, attempt: 2, want: longshore.VerdictRetry, delay: 2 * s},
		{name: "last failure", err: plain, attempt: 3, want: longshore.VerdictReject},
		{name: "beyond the last", err: plain, attempt: 9, want: longshore.VerdictReject},
		{name: "panic", err: panicked, want: longshore.VerdictRetry, delay: s},
		{name: "retry with its delay", err: longshore.Retry(plain, 7*s), want: longshore.VerdictRetry, delay: 7 * s},
		{name: "retry without", err: longshore.Retry(plain, 0), attempt: 2, want: longshore.VerdictRetry, delay: 2 * s},
		{name: "last retry", err: longshore.Retry(plain, 7*s), attempt: 3, want: longshore.VerdictReject, delay: 7 * s},
		{name: "reject", err: longshore.Reject(reason), want: longshore.VerdictReject},
		{name: "discard", err: longshore.Discard(reason), want: longshore.VerdictDiscard},
		{name: "release", err: longshore.Release(reason, 0), attempt: 3, want: longshore.VerdictRelease, delay: s},
		{name: "released again", err: longshore.Release(reason, 0), releases: 2, want: longshore.VerdictRelease, delay: 4 * s},
		{name: "release with its delay", err: longshore.Release(reason, 9*s), releases: 2, want: longshore.VerdictRelease, delay: 9 * s},

		{name: "stopped", err: plain, attempt: 3, stopped: true, want: longshore.VerdictRelease},
		{name: "panic while stopped", err: panicked, stopped: true, want: longshore.VerdictRetry, delay: s},
		{name: "last panic while stopped", err: panicked, attempt: 3, stopped: true, want: longshore.VerdictReject},
		{name: "release while stopped", err: longshore.Release(reason, 9*s), stopped: true, want: longshore.VerdictRelease},
		{name: "retry while stopped", err: longshore.Retry(plain, 7*s), stopped: true, want: longshore.VerdictRetry, delay: 7 * s},
		{name: "reject while stopped", err: longshore.Reject(reason), stopped: true, want: longshore.VerdictReject},

		{name: "classified", err: plain, classify: func(err error) error { return longshore.Discard(err) }, want: longshore.VerdictDiscard},
		{name: "classified as nothing", err: plain, classify: func(error) error { return nil }, want: longshore.VerdictRetry, delay: s},
		{name: "classified without a verdict", err: plain, classify: func(error) error { return reason }, want: longshore.VerdictRetry, delay: s},
		{name: "a verdict is not classified", err: longshore.Reject(reason), classify: func(err error) error { return longshore.Discard(err) }, want: longshore.VerdictReject},
		{name: "nor is anything while stopped", err: plain, stopped: true, classify: func(err error) error { return longshore.Discard(err) }, want: longshore.VerdictRelease},
	} {
		r := rules{attempts: 3, retry: backoff.Policy{Initial: s, Max: time.Minute, Multiplier: 2}, classify: tc.classify}
		j := r.decide(attemptFacts{attempt: max(tc.attempt, 1), releases: tc.releases, stopped: tc.stopped}, tc.err)
		if j.verdict != tc.want || j.delay != tc.delay {
			t.Errorf("%s: %v after %v, want %v after %v", tc.name, j.verdict, j.delay, tc.want, tc.delay)
		}
		if tc.err != nil && !errors.Is(j.err, errors.Unwrap(tc.err)) && !errors.Is(j.err, tc.err) {
			t.Errorf("%s: the reason is lost: %v", tc.name, j.err)
		}
	}
}

// Whatever the facts are, a decision that brings the message back has a delay unless the
// container stops, and only the last attempt rejects what no verdict rejects.
func TestDecisionsAreWhole(t *testing.T) {
	plain := errors.New("down")
	errs := []error{nil, plain, longshore.Retry(plain, 0), longshore.Release(plain, 0), longshore.Reject(plain), longshore.Discard(plain), &longshore.Error{Code: longshore.CodePanic}}
	r := rules{attempts: 4, retry: backoff.Policy{Initial: time.Second, Max: time.Minute, Multiplier: 3, Jitter: 1}}
	for i, err := range errs {
		for attempt := 1; attempt < 8; attempt++ {
			for _, stopped := range []bool{false, true} {
				j := r.decide(attemptFacts{attempt: attempt, releases: attempt, stopped: stopped, random: 0.3}, err)
				name := fmt.Sprintf("error %d, attempt %d, stopped %t", i, attempt, stopped)
				explicit, _ := longshore.VerdictOf(err)
				switch {
				case j.verdict == longshore.VerdictNone || j.verdict == longshore.VerdictLost:
					t.Errorf("%s: no decision", name)
				case j.comesBack() == j.final():
					t.Errorf("%s: %v is both or neither", name, j.verdict)
				case j.comesBack() && !stopped && j.delay <= 0:
					t.Errorf("%s: comes back at once", name)
				case j.verdict == longshore.VerdictRetry && attempt >= 4:
					t.Errorf("%s: a retry after the last attempt", name)
				case j.verdict == longshore.VerdictReject && explicit != longshore.VerdictReject && attempt < 4:
					t.Errorf("%s: rejected early", name)
				}
			}
		}
	}
}
