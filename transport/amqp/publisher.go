package amqp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// PublisherConfig is the configuration of a [Publisher]. The zero value works.
type PublisherConfig struct {
	// Timeout bounds one Publish of up to 256 messages, longer calls in
	// proportion, in addition to its context: a write into a full socket ends with neither.
	// Zero: 10 s.
	Timeout time.Duration
	// AllowUnroutable accepts that no queue takes a message, as with an exchange
	// nobody listens to at the moment. Zero: that is an error (unroutable), although
	// the broker confirms it.
	AllowUnroutable bool
}

var errEmptyDest = errors.New("the destination is empty")

const (
	defaultPublishTimeout = 10 * time.Second
	chunk                 = 256 // messages of one call on their way at once
	// damping keeps many callers from dialling a broker that just refused one.
	damping = 500 * time.Millisecond
)

// Publisher publishes with confirms and mandatory routing over the broker's
// publishing connection. It opens one channel for each exchange, so that an
// exchange that does not exist affects no other publication. It is safe for
// concurrent use; messages of one call to one destination keep their order.
type Publisher struct {
	b   *Broker         // the connection
	cfg PublisherConfig // as given

	turn   chan struct{}          // holds a token; who has it may connect and open channels
	closed bool                   // guarded by turn
	sess   *conn.Session          // guarded by turn
	chans  map[string]*pubChannel // by exchange; guarded by turn
	delays map[string]time.Time   // delay queues and when they were declared
	failed error                  // of the last attempt to connect
	until  time.Time              // no attempt before this time

	wg sync.WaitGroup // calls of Publish
}

var _ transport.Publisher = (*Publisher)(nil)

// Publisher makes a publisher. It connects when it first has to. The error is
// about the configuration, the broker's included.
//
// A destination is a queue, or "exchange/routing.key"; [To] writes any of them.
func (b *Broker) Publisher(cfg PublisherConfig) (*Publisher, error) {
	err := b.set.problem
	if cfg.Timeout < 0 {
		err = errors.Join(err, problem.Range("Timeout", cfg.Timeout, "positive, or 0 for the default, 10s").Of("rabbitmq publisher", ""))
	}
	if err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultPublishTimeout
	}
	p := &Publisher{b: b, cfg: cfg, turn: make(chan struct{}, 1), chans: map[string]*pubChannel{}, delays: map[string]time.Time{}}
	p.turn <- struct{}{}
	return p, nil
}

// Publish returns when the broker has confirmed all messages and routed each to a
// queue. See the package documentation for the errors.
func (p *Publisher) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	exchange, key := parseDest(dest)
	if key == "" && exchange == "" {
		return p.wrap(dest, codec.Refuse(longshore.CodeConfig, errEmptyDest))
	}
	if len(exchange) > codec.MaxShort || len(key) > codec.MaxShort {
		return p.wrap(dest, codec.Refuse(longshore.CodeConfig, errors.New("exchange and routing key are 255 bytes at the most")))
	}
	failed := map[int]error{}
	outs := make([]*outgoing, 0, len(msgs))
	for i, m := range msgs {
		pub, err := codec.Encode(m, p.b.login())
		if err != nil {
			failed[i] = p.wrap(dest, err)
			continue
		}
		outs = append(outs, &outgoing{index: i, exchange: exchange, key: key, pub: pub})
	}
	for len(outs) > 0 {
		n := min(chunk, len(outs))
		for i, err := range p.send(ctx, outs[:n]) {
			if err != nil {
				failed[outs[i].index] = p.wrap(dest, err)
			}
		}
		outs = outs[n:]
	}
	if len(failed) > 0 {
		return &transport.PartialError{Failed: failed, Total: len(msgs)}
	}
	return nil
}

// wrap names the destination.
func (p *Publisher) wrap(dest string, err error) error {
	if errors.Is(err, longshore.ErrClosed) {
		return err
	}
	if e, ok := errors.AsType[*longshore.Error](err); ok && e.Code == longshore.CodeMaybeSent {
		return transport.MaybeSent(fmt.Sprintf("a message to rabbitmq %q", dest), dest, p.wrap(dest, e.Err))
	}
	return onConnect(p.b.set.brokerError("", dest, err), fmt.Sprintf("publish to rabbitmq %q", dest), dest)
}

// login is the user whose name the broker accepts as a message's user-id.
func (b *Broker) login() string {
	if b.set.External {
		return ""
	}
	return b.set.User
}

// send publishes messages of one exchange and returns one result for each. Those whose
// channel was closed over another message go again: that one is not written a second time.
func (p *Publisher) send(ctx context.Context, outs []*outgoing) []error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	errs := p.sendOnce(ctx, outs)
	for range resends {
		var again []*outgoing
		var at []int
		for i, err := range errs {
			if errors.Is(err, errOverAnother) {
				o := *outs[i]
				o.dc, o.err, o.returned = nil, nil, nil
				again, at = append(again, &o), append(at, i)
			}
		}
		if len(again) == 0 {
			break
		}
		for i, err := range p.sendOnce(ctx, again) {
			errs[at[i]] = err
		}
	}
	return errs
}

// sendOnce publishes messages of one exchange. channel has counted the call, so Close waits for it.
func (p *Publisher) sendOnce(ctx context.Context, outs []*outgoing) []error {
	pc, err := p.channel(ctx, outs[0].exchange)
	if err != nil {
		return each(outs, func(*outgoing) error { return err })
	}
	defer p.wg.Done()
	return pc.publish(ctx, outs, !p.cfg.AllowUnroutable)
}

// channel returns the open channel of an exchange; the caller is counted in wg if
// there is no error.
func (p *Publisher) channel(ctx context.Context, exchange string) (*pubChannel, error) {
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the connection: %w", ctx.Err())
	}
	if p.closed {
		return nil, longshore.ErrClosed
	}
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	pc := p.chans[exchange]
	if pc == nil || pc.over() {
		p.trim()
		var err error
		if pc, err = openPubChannel(ctx, p.sess, exchange); err != nil {
			return nil, err
		}
		p.chans[exchange] = pc
	}
	p.wg.Add(1)
	return pc, nil
}

// connect replaces a session that ended. turn is held.
func (p *Publisher) connect(ctx context.Context) error {
	if p.sess != nil && !p.sess.Ended() {
		return nil
	}
	if p.failed != nil && time.Now().Before(p.until) {
		return p.failed
	}
	if p.sess != nil {
		clear(p.chans) // they ended with their connection
		_ = p.b.publish.Release(ctx, p.sess)
		p.sess = nil
	}
	sess, err := p.b.publish.Acquire(ctx)
	p.failed, p.until = err, time.Now().Add(damping)
	p.sess = sess
	return err
}

// resends bounds how often a message is sent again whose channel was closed over another. The
// first time makes the broker's limit known, so there are more only while it is lowered.
const resends = 3

// maxChannels bounds what names of exchanges that come from data could open.
const maxChannels = 64

// trim makes room for one more channel by closing those that are idle.
func (p *Publisher) trim() {
	for name, pc := range p.chans {
		if pc.over() {
			delete(p.chans, name)
		}
	}
	for name, pc := range p.chans {
		if len(p.chans) < maxChannels {
			return
		}
		if pc.idle() {
			pc.close()
			delete(p.chans, name)
		}
	}
}

// Peer names the broker that the publisher is connected to, or "".
func (p *Publisher) Peer() string {
	<-p.turn
	defer func() { p.turn <- struct{}{} }()
	if p.sess == nil {
		return ""
	}
	return p.sess.Peer()
}

// Close waits for calls of Publish and gives the connection back. It ends within
// ctx's time; calls that are not done then fail.
func (p *Publisher) Close(ctx context.Context) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.closed {
		p.turn <- struct{}{}
		return nil
	}
	p.closed = true
	sess, chans := p.sess, p.chans
	p.sess, p.chans = nil, nil
	p.turn <- struct{}{}

	done := make(chan struct{})
	go func() { p.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	for _, pc := range chans {
		pc.close()
	}
	for _, pc := range chans {
		select {
		case <-pc.left:
		case <-ctx.Done(): // its write hangs; the end of the connection ends it
		}
	}
	if sess == nil {
		return ctx.Err()
	}
	return p.b.publish.Release(ctx, sess)
}

// outgoing is one message on its way.
type outgoing struct {
	index         int                // among the messages of the call
	exchange, key string             // where it goes
	pub           amqp091.Publishing // what is written
	// The writer's until it is done.
	dc  *amqp091.DeferredConfirmation
	err error // it was not written

	returned *amqp091.Return // guarded by pubChannel.mu
}
