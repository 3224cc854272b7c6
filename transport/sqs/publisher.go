package sqs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs/internal/codec"
)

// PublisherConfig is the configuration of a [Publisher]. The zero value works.
type PublisherConfig struct {
	// Delay hides every message for this time after it was sent, in whole seconds up
	// to 15 min. Not for FIFO queues, which have it as an attribute. Zero: the
	// queue's own.
	Delay time.Duration
	// NoGroups sends no group id to standard queues, for servers that refuse it; the
	// key is packed instead. Zero: a key is the group id there too, which makes the
	// queue fair between keys and is never an order.
	NoGroups bool
}

// Publisher sends messages to queues: dest is a name, URL or ARN. For the publisher of a
// source a name means a queue on the source's host, in its account. The key is the
// message group; a message without one is a group of its own on a FIFO queue. Its
// deduplication id is the header longshore-id, else Message.ID, else new for
// each message.
//
// A message that fails for reasons that pass is sent again a few times. Behind one
// that fails for good those of the same group in the same call fail too, so that
// order holds.
type Publisher struct {
	b    *Broker         // the account and its endpoint
	cfg  PublisherConfig // as given
	near reference       // the queue alongside which names lie; zero: the broker's

	life context.Context    //nolint:containedctx // ends with Close
	end  context.CancelFunc // ends calls that are on their way
	wg   sync.WaitGroup     // calls of Publish

	mu      sync.Mutex              // guards what follows
	closed  bool                    // Publish fails from then on
	handles map[string]*queueHandle // by name: its URL and limits are asked for once
}

const (
	sendTries   = 4
	parallelism = 4 // batches of one Publish at a time
)

// Publisher makes a publisher. It does no I/O.
func (b *Broker) Publisher(cfg PublisherConfig) (*Publisher, error) {
	var errs []error
	if d := cfg.Delay; d < 0 || d > maxDelay || d%time.Second != 0 {
		errs = append(errs, problem.Range("PublisherConfig.Delay", d, "whole seconds up to 15m").Of("sqs publisher", ""))
	}
	errs = append(errs, b.chain().err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p := &Publisher{b: b, cfg: cfg, handles: map[string]*queueHandle{}}
	p.life, p.end = context.WithCancel(context.Background())
	return p, nil
}

// outgoing is one message of a call to Publish.
type outgoing struct {
	*codec.Encoded
	index int   // in the call
	err   error // why it failed for good
	done  bool  // SQS has confirmed it
	// unsure: a call with it ended without an answer, so that it may have been sent.
	unsure bool
	mates  int // so many at the most in its batch; 0: as many as SQS takes
}

// Publish sends all messages and returns when SQS has confirmed them.
//
// Errors: longshore.ErrClosed; a *transport.PartialError that names those that
// failed (longshore.CodeTooLarge, CodeBadHeader, CodeRefused and others); an
// *longshore.Error if none was sent; ctx's error.
func (p *Publisher) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	if !p.enter() {
		return longshore.ErrClosed
	}
	defer p.wg.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	l, err := p.handle(ctx, dest)
	if err != nil {
		return p.failure(ctx, dest, err)
	}
	outs := make([]*outgoing, len(msgs))
	for i, m := range msgs {
		outs[i] = p.prepare(ctx, l, i, m)
	}
	p.deliver(ctx, l, outs)
	return p.verdict(ctx, dest, outs)
}

// enter counts a call that Close has to wait for; false after Close.
func (p *Publisher) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wg.Add(1)
	return true
}

// prepare encodes a message and moves a body that is too large elsewhere.
func (p *Publisher) prepare(ctx context.Context, l *queueHandle, i int, m *longshore.Message) *outgoing {
	fifo, o := l.fifo, &outgoing{index: i}
	if m == nil {
		o.err = refused(longshore.CodeRefused, errors.New("the message is nil"), "")
		return o
	}
	bare := m
	m = codec.Identified(m)
	if p.encode(o, m, fifo); o.err != nil {
		return o
	}
	limit := l.size.of(ctx, l, o.Size)
	if o.Size <= limit {
		return o
	}
	if plain := (outgoing{}); m != bare {
		if p.encode(&plain, bare, fifo); plain.err == nil && plain.Size <= limit { // the id is all that is too much
			o.Encoded = plain.Encoded
			return o
		}
	}
	store := p.b.cfg.ClaimCheck
	if store == nil || len(o.Body) < o.Size/2 { // the headers are what is large
		hint := "send less, raise the queue's MaximumMessageSize, or set Config.ClaimCheck"
		if o.Binary {
			hint += "; a body that is not text takes a third more"
		}
		o.err = refused(longshore.CodeTooLarge, fmt.Errorf("%d bytes with headers; the queue takes %d", o.Size, limit), hint)
		return o
	}
	small := *m
	small.Body = []byte("claimed")
	if o.Encoded, o.err = codec.Encode(&small, codec.Options{FIFO: fifo, Reserve: 1}); o.err != nil {
		return o
	}
	at, err := store.Store(ctx, m.Body)
	if err != nil {
		o.err = refused(longshore.CodeTooLarge, fmt.Errorf("its body could not be stored: %w", err), "check Config.ClaimCheck")
		return o
	}
	o.Claim(codec.Pointer(at), len(m.Body))
	return o
}

// encode encodes a message.
func (p *Publisher) encode(o *outgoing, m *longshore.Message, fifo bool) {
	o.Encoded, o.err = codec.Encode(m, codec.Options{FIFO: fifo, NoGroup: p.cfg.NoGroups})
}

// handle finds a destination once.
func (p *Publisher) handle(ctx context.Context, dest string) (*queueHandle, error) {
	p.mu.Lock()
	l := p.handles[dest]
	p.mu.Unlock()
	if l != nil {
		return l, nil
	}
	ref, err := p.near.near(dest)
	if err != nil {
		return nil, err
	}
	at, err := locate(ref, &p.b.cfg, p.b.chain().env, &p.b.origins)
	if err != nil {
		return nil, err
	}
	api, err := p.b.acquire(at)
	if err != nil {
		return nil, err
	}
	l = &queueHandle{b: p.b, api: api, fifo: isFIFO(ref.name)}
	if l.url, err = l.find(ctx, ref); err != nil {
		l.close()
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.handles[dest]; known != nil || p.closed {
		l.close()
		if known == nil {
			return nil, longshore.ErrClosed
		}
		return known, nil
	}
	p.handles[dest] = l
	return l, nil
}

// deliver sends until everything has an outcome.
func (p *Publisher) deliver(ctx context.Context, l *queueHandle, outs []*outgoing) {
	open := make([]*outgoing, 0, len(outs))
	for _, o := range outs {
		if o.err == nil {
			open = append(open, o)
		}
	}
	for tries := 0; len(open) > 0 && ctx.Err() == nil; {
		batches := cut(open, l.fifo)
		var split atomic.Bool
		var wg sync.WaitGroup
		for _, batch := range batches[1:] {
			wg.Go(func() { p.sendBatch(ctx, l, batch, tries, &split) })
		}
		p.sendBatch(ctx, l, batches[0], tries, &split)
		wg.Wait()
		progress := split.Load()
		rest := open[:0]
		broken := map[string]bool{}
		for _, o := range open {
			switch {
			case o.done, o.err != nil:
				progress = true
				broken[o.Group] = broken[o.Group] || o.err != nil
			case l.fifo && broken[o.Group]:
				o.err = refused(longshore.CodeRefused, errors.New("an earlier message of its group failed"), "send both again, in order")
			default:
				rest = append(rest, o)
			}
		}
		open = rest
		if !progress {
			tries++
			pause(ctx, 50*time.Millisecond<<min(tries, 5))
		}
	}
}

// pause waits for d, or until ctx ends; the caller finds out which.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// cut makes batches that go at the same time: up to ten entries and the size that
// SQS takes. Of a FIFO group only the first goes, because a batch can fail in its
// middle.
func cut(open []*outgoing, fifo bool) [][]*outgoing {
	var batches [][]*outgoing
	var batch []*outgoing
	size, most := 0, maxBatch
	seen := map[string]bool{}
	for _, o := range open {
		if fifo && seen[o.Group] {
			continue
		}
		if o.mates > 0 {
			most = min(most, o.mates)
		}
		if len(batch) >= most || len(batch) > 0 && size+o.Size > maxMessageBytes {
			batches, batch, size, most = append(batches, batch), nil, 0, maxBatch
			if o.mates > 0 {
				most = o.mates
			}
			if len(batches) == parallelism {
				return batches
			}
		}
		seen[o.Group] = true
		batch, size = append(batch, o), size+o.Size
	}
	if len(batch) > 0 {
		batches = append(batches, batch)
	}
	return batches
}

// sendBatch sends one batch. What fails for a passing reason keeps no outcome, and so
// does what is refused in company: not every server says whom it means, and some take
// less at once than SQS. It goes in smaller batches then.
func (p *Publisher) sendBatch(ctx context.Context, l *queueHandle, batch []*outgoing, tries int, split *atomic.Bool) {
	in := &awssqs.SendMessageBatchInput{QueueUrl: aws.String(l.url)}
	for i, o := range batch {
		e := o.Entry(entryID(i))
		e.DelaySeconds = 0
		if !l.fifo {
			e.DelaySeconds = seconds(p.cfg.Delay)
		}
		in.Entries = append(in.Entries, e)
	}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := l.api.SendMessageBatch(limited, in)
	r := newResult(err)
	if r.inCompany(len(batch)) {
		split.Store(true)
		for _, o := range batch {
			o.mates = len(batch) / 2
		}
		return
	}
	if err == nil {
		r = entriesOf(out.Successful, sentID, out.Failed, (*result).failedSend)
	}
	for i, o := range batch {
		err, passing := r.of(i)
		o.unsure = o.unsure || err != nil && r.unanswered(i) && !neverSent(r.call)
		switch {
		case err == nil:
			o.done = true
		case !passing || tries+1 >= sendTries:
			o.err = sendError(err, r.call)
		}
	}
}

// sendError prefers the error of the whole call, which has its code and hint.
func sendError(err, call error) error {
	if call != nil {
		return callError("publish to sqs", "", call)
	}
	return err
}

// verdict makes the error of a Publish.
func (p *Publisher) verdict(ctx context.Context, dest string, outs []*outgoing) error {
	failed := map[int]error{}
	var same *longshore.Error
	alike := true
	if err := p.unfinished(ctx, dest, outs); err != nil {
		return err
	}
	for _, o := range outs {
		switch {
		case o.err != nil:
			failed[o.index] = o.outcome(dest, p.placed(dest, o.err))
			e, ok := errors.AsType[*longshore.Error](o.err)
			alike = alike && ok && (same == nil || same.Code == e.Code)
			same = e
		}
	}
	switch {
	case len(failed) == 0:
		return nil
	case len(failed) == len(outs) && alike && same.Code == longshore.CodeNotFound:
		p.forgetHandle(dest)
		return p.failure(ctx, dest, same)
	}
	return &transport.PartialError{Failed: failed, Total: len(outs)}
}

// unfinished gives those that ctx cut short their error; it returns it where none was
// sent, nor may have been.
func (p *Publisher) unfinished(ctx context.Context, dest string, outs []*outgoing) error {
	left, sent := 0, false
	for _, o := range outs {
		if !o.done && o.err == nil {
			left++
		}
		sent = sent || o.done || o.unsure
	}
	if left == 0 {
		return nil
	}
	why := p.failure(ctx, dest, ctx.Err())
	if !sent {
		return why
	}
	for _, o := range outs {
		if !o.done && o.err == nil {
			o.err = why
		}
	}
	return nil
}

// outcome is the error of a message, marked if it may have been sent.
func (o *outgoing) outcome(dest string, err error) error {
	if !o.unsure {
		return err
	}
	return transport.MaybeSent("a message to sqs queue "+quote(dest), dest, err)
}

// failure is an error for all messages.
func (p *Publisher) failure(ctx context.Context, dest string, err error) error {
	switch {
	case errors.Is(err, longshore.ErrClosed), p.life.Err() != nil:
		return longshore.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	at := &queueSource{b: p.b}
	var unread error
	if at.ref, unread = p.near.near(dest); unread != nil && strings.Contains(dest, "://") {
		e := at.failure("publish to an sqs queue", err) // the URL may hold a password
		e.Op = "publish to an sqs queue"
		return e
	}
	e := at.failure("publish to sqs queue "+quote(dest), err)
	e.Op, e.Source = "publish to sqs queue "+quote(dest), dest
	return e
}

// forgetHandle makes the next call look the queue up again.
func (p *Publisher) forgetHandle(dest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.handles[dest]; l != nil {
		delete(p.handles, dest)
		l.close()
	}
}

// Close waits for calls of Publish until ctx ends, then cuts them off. It is
// idempotent.
func (p *Publisher) Close(ctx context.Context) error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.mu.Unlock()
	stop := context.AfterFunc(ctx, p.end)
	p.wg.Wait()
	stop()
	p.end()
	if !first {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.handles {
		l.close()
	}
	p.handles = nil
	return nil
}
