package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
)

// Applied says what was done.
type Applied struct {
	Rerun, Deleted int
}

// Apply carries out what is safe of the findings: what is to be rerun goes from the
// dead-letter queue to where queue leads, confirmed before it is taken away there; what
// is to be deleted is taken away. Everything else that the dead-letter queue hands out
// meanwhile goes back. patience is how long nothing may come before it is the end.
func Apply(ctx context.Context, c Case, found []Found, dead, queue transport.Source, patience time.Duration) (done Applied, err error) {
	todo := map[string]mutex.Action{}
	for _, f := range found {
		if f.Safe && (f.Action == mutex.ActionRerun || f.Action == mutex.ActionDelete) {
			todo[f.ID] = f.Action
		}
	}
	if len(todo) == 0 {
		return done, nil
	}
	outlet, ok := queue.(transport.Outlet)
	if !ok {
		return done, &longshore.Error{Code: longshore.CodeUnsupported, Op: "rerun", Err: errors.New("the queue has no publisher")}
	}
	pub, self, err := outlet.Publisher(ctx)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, pub.Close(context.WithoutCancel(ctx))) }()
	consumer, err := dead.Open(ctx, transport.OpenOptions{Window: c.Limit, MaxWindow: c.Limit})
	if err != nil {
		return done, err
	}
	defer func() { // what is not settled goes back
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, consumer.Flush(end), consumer.Close(end))
	}()
	for seen := 0; seen < c.Limit; {
		ds, err := receive(ctx, consumer, patience)
		if err != nil || len(ds) == 0 {
			return done, err
		}
		seen += len(ds)
		for _, d := range ds {
			if err := one(ctx, d, todo[IDOf(d, c.Headers)], pub, self, &done); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// receive returns nothing when nothing came for a while.
func receive(ctx context.Context, consumer transport.Consumer, patience time.Duration) ([]*longshore.Delivery, error) {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ds, err := consumer.Receive(wait, 100)
	if err != nil && ctx.Err() == nil && wait.Err() != nil {
		return nil, nil
	}
	return ds, err
}

func one(ctx context.Context, d *longshore.Delivery, a mutex.Action, pub transport.Publisher, self string, done *Applied) error {
	switch a {
	case mutex.ActionRerun:
		if err := pub.Publish(ctx, self, d.Received()); err != nil {
			return err
		}
		done.Rerun++
		return d.Ack(ctx)
	case mutex.ActionDelete:
		done.Deleted++
		return d.Ack(ctx)
	default:
		return nil
	}
}
