package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Reason is why a route stopped by itself.
type Reason string

// The reasons.
const (
	SourceGone      Reason = "source-gone"      // the queue or topic that was emptied does not exist any more
	SourceRecreated Reason = "source-recreated" // it was deleted and made again
	TargetGone      Reason = "target-gone"      // the queue or topic that was filled does not exist any more
	TargetRecreated Reason = "target-recreated" // it was deleted and made again
	TargetMissing   Reason = "target-missing"   // Start: the queue or topic to fill does not exist
	OtherConsumers  Reason = "other-consumers"  // Config.Alone, and another consumer takes messages of the source
	Unsendable      Reason = "unsendable"       // Config.OnUnsendable is StopRoute, and the target refused a message
	Guarded         Reason = "guard"            // Config.Guard returned an error
	ContainerEnded  Reason = "container-ended"  // the container of the route ended, see its log
)

// Precondition reports whether the route can be started once this reason is removed, without
// looking at what it has moved.
func (r Reason) Precondition() bool { return r == TargetMissing || r == OtherConsumers }

// StoppedError is why a route stopped by itself before it was finished. What it had received and
// not forwarded is back at the source.
type StoppedError struct {
	Route  string
	Reason Reason
	Err    error // what differs from what the route began with
}

func (e *StoppedError) Error() string { return fmt.Sprintf("%s: %v", e.Reason, e.Err) }

func (e *StoppedError) Unwrap() error { return e.Err }

// typed wraps it in the error that Err and Run return.
func (e *StoppedError) typed() error {
	hints := map[Reason]string{
		SourceGone:      "check who deleted it; what it held cannot be moved",
		SourceRecreated: "run verify to see what was moved, then start the route again for the new one",
		TargetGone:      "create it again; verify shows what was lost with it",
		TargetRecreated: "run verify to see what was lost with the old one",
		TargetMissing:   "create the target, then start the route again; if it existed before, longshore bridge verify shows what was lost with it",
		OtherConsumers:  "stop the other consumers, then start the route again",
		Unsendable:      "correct or remove the message at the source, or let the route park such messages",
		Guarded:         "correct what differs, then start the route again",
		ContainerEnded:  "correct the cause, then start the route again",
	}
	code := longshore.CodeOf(e.Err)
	if code == "" || code == longshore.CodeHandler {
		code = longshore.CodeState
	}
	return &longshore.Error{Code: code, Op: fmt.Sprintf("route %q stopped", e.Route), Source: e.Route, Err: e, Hint: hints[e.Reason]}
}

// incarnation tells a place from another one that later has its name.
type incarnation struct {
	src   transport.Source
	first string // what it was when the route began
	gone  Reason
	other Reason // it is another one under the same name
	away  int    // answers in a row that it does not exist
}

// goneTwice: a broker that restarts may say once that a queue or topic does not exist.
const goneTwice = 2

// begin notes what the place is now. A place that cannot be reached is looked at later.
func (i *incarnation) begin(ctx context.Context) {
	i.away = 0
	i.first, _ = identify(ctx, i.src) // read again by check
}

// identify returns the identity of a place, "" where the broker gives none. Errors: those of a
// probe, such as [longshore.CodeNotFound].
func identify(ctx context.Context, place any) (string, error) {
	switch x := place.(type) {
	case transport.Incarnated:
		return x.Incarnation(ctx)
	case transport.Prober:
		return "", x.Probe(ctx)
	}
	return "", nil
}

// missing reports whether a place does not exist, by as many answers as check wants.
func missing(ctx context.Context, place any) bool {
	for range goneTwice {
		if _, err := identify(ctx, place); !errors.Is(err, longshore.CodeNotFound) {
			return false
		}
		again := time.NewTimer(200 * time.Millisecond)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return false
		}
	}
	return true
}

// check compares the place with what it was; nil while it cannot be reached.
func (i *incarnation) check(ctx context.Context) *StoppedError {
	now, err := identify(ctx, i.src)
	switch {
	case errors.Is(err, longshore.CodeNotFound):
		if i.away++; i.away >= goneTwice {
			return &StoppedError{Reason: i.gone, Err: err}
		}
		return nil
	case err != nil:
		return nil // the container and the breaker deal with outages
	}
	i.away = 0
	if i.first == "" {
		i.first = now
	}
	if now != i.first {
		return &StoppedError{Reason: i.other, Err: fmt.Errorf("it was %s and is %s", i.first, now)}
	}
	return nil
}
