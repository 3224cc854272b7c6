package kafka

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// The client fails records together: all of a batch that the broker refuses for the sake of
// one of them, and with it all that wait for the same partition, or all behind a record whose
// time is over. What fails for the sake of another is sent again here.

// fate is what becomes of a record that the client handed back.
type fate uint8

const (
	settled fate = iota // it was written, or its error is its own
	refused             // its batch was refused, which may be another record's fault
	late                // it was taken back with a record before it whose time was over
)

// fateOf decides it; over says that the record's own time has ended.
func fateOf(err error, over bool) fate {
	var op *net.OpError
	switch {
	case err == nil, over:
		return settled
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge), errors.Is(err, kerr.InvalidTimestamp),
		errors.Is(err, kerr.InvalidRecord), errors.Is(err, kerr.CorruptMessage):
		return refused
	// Not the record's own context: over is false. So it went with another record, or with a dial.
	case errors.Is(err, context.Canceled), errors.As(err, &op) && !op.Timeout(): // the client itself goes on dialling
		return late
	}
	return settled
}

const (
	resendPause    = 250 * time.Millisecond // doubles while the leader does not answer,
	resendPauseMax = 5 * time.Second        // up to this: each try may be written when it does
	mostHeavy      = 1000                   // topics whose limit is remembered
)

// parcel is a record that is sent again.
type parcel struct {
	rec       *kgo.Record     // as it was, so that it has the same identity
	ctx       context.Context //nolint:containedctx // the time of its Publish, which it was called with
	done      func(error)     // takes its outcome, once
	restamped bool            // has the present as its time, since the broker refused its own
}

// lane is a partition of a topic; negative: one that is not chosen yet.
type lane struct {
	topic     string // of the record
	partition int32  // records of one keep their order
}

// resends sends records again, in the order in which they came back. It has a client of its
// own, where a batch holds what is in one group and nothing else.
type resends struct {
	opts []kgo.Opt // of the publisher's client

	life context.Context    //nolint:containedctx // ends with close
	end  context.CancelFunc // ends life
	wg   sync.WaitGroup     // lanes

	mu     sync.Mutex        // guards what follows
	with   *producing        // nil until it is first needed
	lanes  map[lane][]parcel // those with a goroutine, and what waits for it
	heavy  map[string]int64  // by topic, the weight of the lightest record that was too large
	closed bool              // what comes back from then on fails
}

// newResends starts nothing: a lane has a goroutine only while it has records.
func newResends(opts []kgo.Opt) *resends {
	r := &resends{opts: opts, lanes: map[lane][]parcel{}, heavy: map[string]int64{}}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// add takes a record that is to be sent again. It does not block.
func (r *resends) add(p parcel) {
	at := lane{p.rec.Topic, p.rec.Partition}
	r.mu.Lock()
	queue, busy := r.lanes[at]
	// A lane that is busy still ends what it has: its records were accepted before the close.
	if r.closed && !busy {
		r.mu.Unlock()
		p.done(kgo.ErrClientClosed)
		return
	}
	r.lanes[at] = append(queue, p)
	if !busy {
		r.wg.Go(func() { r.run(at) })
	}
	r.mu.Unlock()
}

// take returns what waits in a lane. A lane ends when there is nothing and none is left.
func (r *resends) take(at lane, left []parcel) []parcel {
	r.mu.Lock()
	defer r.mu.Unlock()
	left = append(left, r.lanes[at]...)
	if len(left) == 0 {
		delete(r.lanes, at)
	} else {
		r.lanes[at] = nil
	}
	return left
}

// run sends what waits for a lane, group by group, so that the order of its records holds. A
// pause lies between tries that wrote nothing, because each try may be written when a leader
// that was silent comes back.
func (r *resends) run(at lane) {
	pause := resendPause
	for group := r.take(at, nil); len(group) > 0; group = r.take(at, group) {
		with, err := r.enter()
		if err != nil {
			for _, p := range group {
				p.done(err)
			}
			group = nil
			continue
		}
		var written bool
		group, written = r.send(with.cl, group)
		r.leave(with, !written)
		if written {
			pause = resendPause
		}
		if len(group) > 0 {
			group = wait(r.life, group, pause)
			pause = min(2*pause, resendPauseMax)
		}
	}
}

// wait passes a pause, and returns what still has time then. What has none is not sent again
// and takes nothing back with it.
func wait(life context.Context, group []parcel, pause time.Duration) []parcel {
	t := time.NewTimer(pause)
	defer t.Stop()
	for {
		group = slices.DeleteFunc(group, func(p parcel) bool {
			over := p.ctx.Err()
			if over != nil {
				p.done(over)
			}
			return over != nil
		})
		if len(group) == 0 {
			return nil
		}
		select {
		case <-group[0].ctx.Done():
		case <-t.C:
			return group
		case <-life.Done():
			return group
		}
	}
}

// enter returns the client to send with.
func (r *resends) enter() (*producing, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() != nil {
		return nil, kgo.ErrClientClosed
	}
	if r.with == nil {
		cl, err := kgo.NewClient(r.opts...)
		if err != nil {
			return nil, badOptions(err)
		}
		r.with = &producing{cl: cl}
	}
	r.with.users++
	return r.with, nil
}

// leave ends the use of a client. One that was refused an identity fails whatever it is given:
// see Publisher.leave.
func (r *resends) leave(with *producing, failed bool) {
	stuck := failed && cluster.IdentityRefused(with.cl) != nil
	r.mu.Lock()
	with.users--
	if stuck && r.with == with {
		r.with, with.over = nil, true
	}
	last := with.over && with.users == 0
	r.mu.Unlock()
	if last {
		with.cl.Close()
	}
}

// send sends a group, and halves of what is refused, until a refusal is a record's own. It
// returns what was taken back, and whether anything was written.
func (r *resends) send(cl *kgo.Client, group []parcel) (back []parcel, written bool) {
	var again []parcel
	errs := sendAll(cl, group)
	for i, p := range group {
		switch fateOf(errs[i], p.ctx.Err() != nil) {
		case settled:
			written = written || errs[i] == nil
			r.weighed(p.rec, errs[i])
			p.done(errs[i])
		case late:
			back = append(back, p)
		case refused:
			again = append(again, p)
		}
	}
	if len(group) == 1 && len(again) == 1 {
		if p := &again[0]; !errors.Is(errs[0], kerr.InvalidTimestamp) || !p.restamp(time.Now()) {
			r.weighed(p.rec, errs[0])
			p.done(errs[0])
			return back, written
		}
	}
	// Halving finds one bad record of 500 with 9 refusals, where one by one would be 500 requests.
	half := (len(again) + 1) / 2
	// The first half before the second, and each until it has an outcome: that keeps the order.
	for _, part := range [][]parcel{again[:half], again[half:]} {
		if len(part) > 0 {
			b, w := r.send(cl, part)
			back, written = append(back, b...), written || w
		}
	}
	return back, written
}

// sendAll writes a group and waits for the outcome of each record. The client gets copies: it
// writes into the records that it is given.
func sendAll(cl *kgo.Client, group []parcel) []error {
	errs := make([]error, len(group))
	var all sync.WaitGroup
	for i, p := range group {
		all.Add(1)
		cl.Produce(p.ctx, copyOf(p.rec), func(_ *kgo.Record, err error) {
			errs[i] = err
			all.Done()
		})
	}
	all.Wait()
	return errs
}

// copyOf is a record as it was before the client had it, but for the partition that was
// chosen.
func copyOf(r *kgo.Record) *kgo.Record {
	return &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
}

// restamp gives the record the present as its time, for a topic whose limit its own is
// beyond. The message's time goes into a header, as that of a very old one does.
func (p *parcel) restamp(now time.Time) bool {
	if p.restamped {
		return false
	}
	at := p.rec.Timestamp
	p.restamped, p.rec = true, copyOf(p.rec)
	p.rec.Timestamp = now
	for _, h := range p.rec.Headers {
		if h.Key == headerProps+"timestamp" {
			return true
		}
	}
	p.rec.Headers = append(p.rec.Headers[:len(p.rec.Headers):len(p.rec.Headers)],
		kgo.RecordHeader{Key: headerProps + "timestamp", Value: []byte(at.Format(time.RFC3339Nano))})
	return true
}

// weighed notes the outcome of a record that went by itself: one as heavy goes by itself from
// then on, and does not have others refused with it each time that it is tried.
func (r *resends) weighed(rec *kgo.Record, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, some := r.heavy[rec.Topic]
	switch n := weight(rec); {
	// The topic's limit was raised since.
	case err == nil && some && n >= known:
		delete(r.heavy, rec.Topic)
	case errors.Is(err, kerr.MessageTooLarge) && (!some || n < known) && (some || len(r.heavy) < mostHeavy):
		// Bounded, because topics come from the caller: beyond it, heavy records cost one refusal each.
		r.heavy[rec.Topic] = n
	}
}

// suspects says that a record is to go by itself.
func (r *resends) suspects(rec *kgo.Record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, some := r.heavy[rec.Topic]
	return some && weight(rec) >= known
}

// close waits for calls in progress, as long as ctx allows. Nothing may be added to the
// main client any more.
func (r *resends) close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	idle := make(chan struct{})
	go func() { defer close(idle); r.wg.Wait() }()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	r.mu.Lock()
	// After ctx the rest fails by the end of its client, so that this never hangs on a silent leader.
	r.end() // no client is made after it
	with := r.with
	r.mu.Unlock()
	if with != nil {
		with.cl.Close()
	}
	<-idle
}
