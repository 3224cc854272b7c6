package bridge

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Remaining is what a route has not moved yet.
type Remaining struct {
	Source      transport.Remaining // the queue or topic that is emptied, with its delay queues
	Parked      transport.Remaining // the place for messages that the target refused
	DeadLetters transport.Remaining // Config.DeadLetterPlace
}

// Empty reports that nothing is left at any of the places.
func (r *Remaining) Empty() bool {
	return r.Source.Messages()+r.Parked.Messages()+r.DeadLetters.Messages() == 0
}

// Remaining counts what is left on the source's side. A place that does not exist holds
// nothing. It can be called before Start and after Stop, and takes no message. The route itself
// is one of the source's consumers while it runs.
func (r *Route) Remaining(ctx context.Context) (Remaining, error) {
	source, err := remainingAt(ctx, r.from)
	if err != nil {
		return Remaining{}, err
	}
	parked, err := r.remainingNear(ctx, r.park)
	if err != nil {
		return Remaining{}, err
	}
	dead, err := r.remainingNear(ctx, r.deadLetters)
	return Remaining{Source: source, Parked: parked, DeadLetters: dead}, err
}

// remainingNear counts another place on the source's broker.
func (r *Route) remainingNear(ctx context.Context, name string) (transport.Remaining, error) {
	n, ok := r.from.(transport.Neighbour)
	if name == "" || !ok {
		return transport.Remaining{Exact: true}, nil
	}
	found, err := remainingAt(ctx, n.Neighbour(name))
	if errors.Is(err, longshore.CodeNotFound) {
		return transport.Remaining{Exact: true}, nil
	}
	return found, err
}

// remainingAt counts what remains at a place.
func remainingAt(ctx context.Context, src transport.Source) (transport.Remaining, error) {
	c, ok := src.(transport.Remainder)
	if !ok {
		return transport.Remaining{}, &longshore.Error{Code: longshore.CodeUnsupported, Op: "count what remains at a bridge's source",
			Err: errors.New("it does not count its messages (transport.Remainder)"), Hint: "use a source of a built-in transport, or add Remaining to yours"}
	}
	return c.Remaining(ctx)
}
