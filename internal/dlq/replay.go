package dlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/hops"
	"github.com/longshore-go/longshore/transport"
)

// Replay sends dead letters to where they came from, in their order, and takes each
// away only after it was confirmed there. Should the process die in between, at most
// one batch is sent twice and nothing is lost. What cannot be sent stays, and with it
// what later batches hold of the same key.
//
// A ctx that ends lets the batch that is on its way come to its end.
func Replay(ctx context.Context, j Job) (res Result, err error) {
	outlet, ok := j.Source.(transport.Outlet)
	if !ok {
		return res, &longshore.Error{Code: longshore.CodeUnsupported, Op: "replay dead letters", Err: errors.New("this source has no publisher")}
	}
	pub, self, err := outlet.Publisher(ctx)
	if err != nil {
		return res, err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), defaultPatience)
		defer cancel()
		if cerr := pub.Close(end); err == nil {
			err = cerr
		}
	}()
	r, err := j.start(ctx)
	if err != nil || r.consumer == nil {
		return r.res, err
	}
	r.pub, r.self = pub, self
	err = r.each(ctx, r.send)
	// After a first error the end has little to add: what is not settled comes back.
	if eerr := r.end(ctx); err == nil {
		err = eerr
	}
	return r.res, err
}

// send publishes a batch, run by run of one destination, and settles what was
// confirmed.
func (r *run) send(ctx context.Context, batch []letter) error {
	batch = r.mayMove(batch)
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].to == batch[0].to {
			n++
		}
		if err := r.sendTo(ctx, batch[0].to, batch[:n]); err != nil {
			for _, l := range batch[n:] {
				r.kept = append(r.kept, l.d)
			}
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// mayMove leaves out what has been moved too often, and what is behind it.
func (r *run) mayMove(batch []letter) []letter {
	limit := r.MaxHops
	if limit == 0 {
		limit = hops.Limit
	}
	out := batch[:0:0]
	for _, l := range batch {
		if l.d.Key != nil && r.stuck[string(l.d.Key)] {
			r.kept = append(r.kept, l.d)
			continue
		}
		if err := hops.Check(l.d.Received().Headers, limit, "the limit of hops (--max-hops)"); err != nil {
			r.fail(err, []letter{l})
			continue
		}
		out = append(out, l)
	}
	return out
}

func (r *run) sendTo(ctx context.Context, to string, batch []letter) error {
	msgs := make([]*longshore.Message, len(batch))
	for i, l := range batch {
		msgs[i] = Restore(l.d)
	}
	err := r.pub.Publish(ctx, to, msgs...)
	var partial *transport.PartialError
	if err != nil && !errors.As(err, &partial) {
		if ctx.Err() != nil || doubtful(err) {
			r.doubt(batch...)
		} else {
			r.fail(err, batch)
		}
		return err
	}
	var broken error
	sent := make([]letter, 0, len(batch))
	for i, l := range batch {
		if partial == nil || partial.Failed[i] == nil {
			sent = append(sent, l)
			continue
		}
		if cause := partial.Failed[i]; doubtful(cause) {
			r.doubt(l)
			broken = cause
		} else {
			r.fail(cause, batch[i:i+1])
		}
	}
	if err := r.settle(ctx, sent); err != nil {
		return err
	}
	if broken != nil {
		return broken
	}
	if r.refused += len(batch) - len(sent); len(sent) > 0 {
		r.refused = 0
	}
	if r.refused >= maxRefused {
		return fmt.Errorf("%d in a row could not be sent: %w", r.refused, r.res.First)
	}
	return nil
}

// doubtful reports whether a message with this error may have arrived anyway: the
// broker's answer did not come.
func doubtful(err error) bool {
	switch longshore.CodeOf(err) {
	case longshore.CodeMaybeSent, longshore.CodeConnLost, longshore.CodeUnreachable, longshore.CodeTimeout:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// doubt keeps what may have been sent.
func (r *run) doubt(ls ...letter) {
	r.res.Open += len(ls)
	r.keep(ls)
}

// maxRefused is how many in a row may be refused until it is not the messages' fault.
const maxRefused = 100

func (r *run) fail(err error, ls []letter) {
	if r.res.First == nil {
		r.res.First = err
	}
	for _, l := range ls {
		r.res.Failed++
		r.kept = append(r.kept, l.d)
		if l.d.Key != nil {
			r.stuck[string(l.d.Key)] = true
		}
	}
}
