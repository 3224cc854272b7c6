package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Job is the work on the dead letters of a source.
type Job struct {
	Source transport.Source
	Filter Filter
	// To is a destination on the same broker; "" = where each came from.
	To string
	// Limit is how many to take at most; 0 = no limit.
	Limit int
	// Batch is how many are sent before they are settled, so the most that can be
	// sent twice when the process dies. Zero: 100.
	Batch int
	// MaxHops is how often a message may have been moved before, by containers and
	// replays, to be sent once more. Zero: 8.
	MaxHops int
	// Rate is how many to send a second; 0 = no limit.
	Rate float64
	// Hold is how many messages that are not chosen are held unsettled meanwhile, so
	// that they do not come again; what lies behind them is not reached. Zero: 10,000.
	Hold int
	// Quiet is how long nothing may come before it is the end. Zero: 3 s.
	Quiet time.Duration
	// Patience bounds each call to the broker. Zero: 30 s.
	Patience time.Duration
	// Progress hears after each batch, from the goroutine of the call.
	Progress func(Result)
}

// Result is what was done.
type Result struct {
	Total  int64 // how many there are to look at, or to send where that is known; 0 = unknown
	Looked int   // how many were received
	Done   int   // sent or removed, and gone from where they were
	Failed int   // could not be sent; they stay
	Kept   int   // not chosen; they stay
	// Unknown is how many stay because nothing in them says where they came from.
	Unknown int
	// Open is how many may have been sent and may be where they were anyway: the
	// broker went away, or the end came, in between. They are sent again.
	Open int
	// Full: so many stay that what lies behind them was not reached.
	Full bool
	// Behind is how many the broker had and did not hand out: of a FIFO group nothing
	// comes while one of it stays, and another consumer may have the queue to itself.
	Behind int
	// First is the first error of those that failed.
	First error
}

const (
	defaultBatch    = 100
	defaultHold     = 10_000
	defaultQuiet    = 3 * time.Second
	defaultPatience = 30 * time.Second
	// joinQuiet is how long a group may take until its first records come: the member
	// of a process that was killed has to time out.
	joinQuiet = time.Minute
	// logWindow is how many records of a partition may lie between the first that
	// stays and the last that is taken.
	logWindow = 1 << 15
)

func (j *Job) fill() {
	for field, value := range map[*int]int{&j.Batch: defaultBatch, &j.Hold: defaultHold} {
		if *field <= 0 {
			*field = value
		}
	}
	for field, value := range map[*time.Duration]time.Duration{&j.Quiet: defaultQuiet, &j.Patience: defaultPatience} {
		if *field <= 0 {
			*field = value
		}
	}
	if j.Rate > 0 { // several steps a second, so that the rate is one
		j.Batch = max(1, min(j.Batch, int(j.Rate/4)))
	}
	if j.Limit > 0 {
		j.Batch = min(j.Batch, j.Limit)
	}
}

// place names a position of a log.
type place struct {
	partition int32
	position  uint64
}

func placeOf(d *longshore.Delivery) place { return place{d.Origin.Partition, d.Origin.Position} }

// run is one Job being done.
type run struct {
	Job

	res      Result
	consumer transport.Consumer
	pub      transport.Publisher // nil when removing
	self     string              // the destination that leads to where the dead letters are
	began    time.Time
	next     time.Time      // when the next batch may go
	planned  map[place]bool // of a log: what is to be done and was not yet; nil elsewhere
	kept     []*longshore.Delivery
	window   int
	exact    bool            // Total is what there was
	fifo     bool            // of SQS: what stays holds up its group
	refused  int             // in a row
	stuck    map[string]bool // keys of which one could not be sent: later ones must not overtake it
}

// letter is one that was chosen.
type letter struct {
	d  *longshore.Delivery
	to string
}

func (j Job) start(ctx context.Context) (*run, error) {
	j.fill()
	r := &run{Job: j, began: time.Now(), stuck: map[string]bool{}}
	if _, ok := j.Source.(Log); ok {
		if err := r.plan(ctx); err != nil || len(r.planned) == 0 {
			return r, err
		}
	}
	// Small: should this process die, all that the window holds was delivered once more.
	r.window = r.Batch
	if r.planned != nil {
		r.window = logWindow
	}
	opening, cancel := context.WithTimeout(ctx, j.Patience)
	defer cancel()
	c, err := j.Source.Open(opening, transport.OpenOptions{Base: context.WithoutCancel(ctx), Window: r.window, MaxWindow: max(r.window, r.Hold)})
	if err != nil {
		return r, err
	}
	r.consumer = c
	if r.planned == nil {
		r.count(opening)
	}
	return r, nil
}

// plan looks what of a log is to be done. That costs nothing there, and says when
// the end is reached.
func (r *run) plan(ctx context.Context) error {
	r.planned = map[place]bool{}
	_, err := Look(ctx, r.Source, 1<<31, func(l Letter) bool {
		if !l.Replayed && r.Filter.Match(l.Delivery, l.Facts) {
			r.planned[placeOf(l.Delivery)] = true
		}
		return r.Limit == 0 || len(r.planned) < r.Limit
	})
	r.res.Total = int64(len(r.planned))
	return err
}

// count asks how many there are; it is only for the progress.
func (r *run) count(ctx context.Context) {
	b, ok := r.consumer.(transport.Backlogger)
	if !ok {
		return
	}
	n, _, err := b.Backlog(ctx)
	if err != nil {
		return
	}
	if buf, ok := r.consumer.(transport.Bufferer); ok {
		n += int64(buf.Buffered())
	}
	if s, ok := r.Source.(transport.Describer); ok {
		about := s.Describe()
		r.exact = !about.Approximate
		r.fifo = !r.exact && r.Source.Capabilities().Keyed
	}
	if r.Limit > 0 && r.Filter.All() {
		n = min(n, int64(r.Limit))
	}
	r.res.Total = n
}

// each receives until all was seen and hands batches of what is chosen to do.
func (r *run) each(ctx context.Context, do func(context.Context, []letter) error) error {
	var batch []letter
	for {
		want := r.want()
		if err := r.widen(ctx); err != nil {
			return err
		}
		ds, end, err := r.receive(ctx, min(want-len(batch), r.Hold-len(r.kept)))
		for _, d := range ds {
			if l, ok := r.choose(d); ok {
				batch = append(batch, l)
			}
		}
		if full := len(batch) >= want || end || err != nil || len(r.kept) >= r.Hold; full && len(batch) > 0 && ctx.Err() == nil {
			if derr := r.step(ctx, batch, do); derr != nil {
				return derr
			}
			batch = batch[:0]
		}
		if end || err != nil {
			r.keep(batch)
		}
		r.res.Full = len(r.kept) >= r.Hold || end && len(r.planned) > 0
		switch {
		case err != nil, end, r.res.Full:
			return err
		case r.want() <= 0, r.planned != nil && len(r.planned) == 0 && len(batch) == 0:
			return nil
		}
	}
}

// want is how many to send next.
func (r *run) want() int {
	if r.Limit > 0 {
		return min(r.Batch, r.Limit-r.res.Done-r.res.Failed)
	}
	return r.Batch
}

// widen makes room in the window alongside what is kept.
func (r *run) widen(ctx context.Context) error {
	if len(r.kept)+r.Batch <= r.window {
		return nil
	}
	r.window = 2 * (len(r.kept) + r.Batch)
	c, ok := r.consumer.(transport.Resizer)
	if !ok {
		return nil
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Patience)
	defer cancel()
	return c.Resize(bounded, r.window)
}

// step waits for the rate, then does a batch to its end, also when the caller gives
// up: half a batch would be sent twice.
func (r *run) step(ctx context.Context, batch []letter, do func(context.Context, []letter) error) error {
	if wait := time.Until(r.next); r.Rate > 0 && wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			r.keep(batch)
			return ctx.Err()
		}
	}
	if r.Rate > 0 {
		r.next = time.Now().Add(time.Duration(float64(len(batch)) / r.Rate * float64(time.Second)))
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Patience)
	defer cancel()
	err := do(bounded, batch)
	if r.Progress != nil && err == nil {
		r.Progress(r.res)
	}
	return err
}

// keep remembers what is not sent after all.
func (r *run) keep(ls []letter) {
	for _, l := range ls {
		r.kept = append(r.kept, l.d)
	}
}

// receive returns end when nothing came for a while.
func (r *run) receive(ctx context.Context, n int) (ds []*longshore.Delivery, end bool, err error) {
	quiet := r.Quiet
	switch {
	case r.planned != nil && r.res.Looked == 0:
		quiet = max(quiet, joinQuiet)
	case r.exact && int64(r.res.Looked) >= r.res.Total: // that was all there was
		quiet /= 20
	}
	wait, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	ds, err = r.consumer.Receive(wait, max(n, 1))
	r.res.Looked += len(ds)
	switch {
	case err == nil:
		return ds, false, nil
	case ctx.Err() == nil && wait.Err() != nil:
		return nil, true, r.answers(ctx)
	}
	return ds, false, err
}

// answers asks the broker what is left: where nothing comes any more it may be away, and
// a source that polls does not say so; or it holds back what there is.
func (r *run) answers(ctx context.Context) error {
	b, ok := r.consumer.(transport.Backlogger)
	if !ok {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	n, _, err := b.Backlog(bounded)
	switch {
	case err != nil && doubtful(err):
		return err
	case err != nil: // it may also be that the count is not for us to know
	case r.exact && int64(r.res.Looked) < r.res.Total, r.fifo && (len(r.kept) > 0 || r.res.Looked == 0):
		r.res.Behind = int(max(n, 0))
	}
	return nil
}

// choose decides what happens with a message; what is not chosen is kept.
func (r *run) choose(d *longshore.Delivery) (l letter, ok bool) {
	facts := FactsOf(d)
	chosen := r.Filter.Match(d, facts)
	if r.planned != nil {
		chosen = r.planned[placeOf(d)]
		delete(r.planned, placeOf(d))
	}
	l = letter{d: d, to: r.To}
	if l.to == "" {
		l.to = facts.To
	}
	switch {
	case !chosen, r.failedAgain(d, facts):
		r.res.Kept++
	case r.pub == nil:
		return l, true
	case l.to == "" || l.to == r.self:
		r.res.Unknown++
	case d.Key != nil && r.stuck[string(d.Key)]:
		r.res.Failed++
	default:
		return l, true
	}
	if r.planned == nil { // in a log they stay where they are
		r.kept = append(r.kept, d)
	}
	return l, false
}

// failedAgain reports whether the message was replayed and has come back since this
// run began: to send it on and on would never end.
func (r *run) failedAgain(d *longshore.Delivery, facts Facts) bool {
	at := facts.At
	if at.IsZero() {
		at = sentAt(d)
	}
	return facts.Replays > 0 && at.After(r.began)
}

// settle acks what is done with and waits until the broker has it.
func (r *run) settle(ctx context.Context, ls []letter) error {
	var errs []error
	for _, l := range ls {
		errs = append(errs, l.d.Ack(ctx))
	}
	err := errors.Join(append(errs, r.consumer.Flush(ctx))...)
	if err != nil {
		r.res.Open += len(ls)
		return fmt.Errorf("settle %d dead letters: %w", len(ls), err)
	}
	r.res.Done += len(ls)
	return nil
}

// end gives back what was not done and closes.
func (r *run) end(ctx context.Context) error {
	if r.consumer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Patience)
	defer cancel()
	errs := []error{r.consumer.Cancel(ctx), r.consumer.Release(ctx)}
	for _, d := range r.kept {
		if d.Owned() && r.planned == nil {
			errs = append(errs, d.Apply(ctx, longshore.Settlement{Verb: longshore.VerbNack, Attempt: d.Attempt}))
		}
	}
	errs = append(errs, r.consumer.Flush(ctx), r.consumer.Close(ctx))
	return errors.Join(errs...)
}
