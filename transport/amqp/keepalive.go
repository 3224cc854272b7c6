package amqp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// A policy can make queues expire that were declared to live longer: of two values RabbitMQ
// takes the lower one, on every version. A queue that is neither consumed from nor declared
// for that long is deleted with its messages, without a word, and AMQP does not show
// policies. Queues that hold messages of ours are therefore declared again and again while a
// consumer is open, and an empty queue of the same name family, which is left alone for
// longer and longer, shows whether they would have expired. What holds while no consumer is
// open only the management API shows: see policies.go.

const (
	// keepFirst is the pause between two declarations as long as nothing is known.
	keepFirst = time.Second
	// keepMost bounds the time for which the test queue is left alone.
	keepMost = time.Minute
	// keepMargin is for how long a queue is kept after the last message in it is due.
	keepMargin = 5 * time.Second
)

// expiryTest is what the test queue has shown.
type expiryTest struct {
	proven time.Duration // queues survive this long
	gap    time.Duration // the next test is this long
	failed bool          // the test queue went away: queues do expire
}

// survived is the test after the queue was found again.
func (e expiryTest) survived() expiryTest {
	e.proven = e.gap
	e.gap = min(2*e.gap, keepMost)
	return e
}

// pause is the time between two declarations of a queue that must not expire.
func (e expiryTest) pause() time.Duration {
	if e.failed {
		return keepFirst
	}
	return max(keepFirst, e.proven/2)
}

// keepalive keeps queues of one consumer from expiring.
type keepalive struct {
	src     *Queue           // where it is remembered that queues expire
	sess    *conn.Session    // a scratch channel for each look, since a missing queue closes the channel
	notices *notify.Notifier // what was deleted
	gone    <-chan struct{}  // the channel is gone
	name    string           // of the test queue
	wake    chan struct{}    // there is something to keep

	mu    sync.Mutex           // guards what follows
	fixed string               // the dead-letter queue that we declared, kept while the consumer lives; "": none
	until map[string]time.Time // delay queues, and when the last message in them is due
}

func newKeepalive(src *Queue, sess *conn.Session, notices *notify.Notifier, gone <-chan struct{}) *keepalive {
	return &keepalive{src: src, sess: sess, notices: notices, gone: gone, wake: make(chan struct{}, 1), until: map[string]time.Time{}}
}

// begin names what is kept: the dead-letter queue if we declared it, and delay queues once
// there are any. The test queue has a name that policies for delay queues match too. It is
// this consumer's own: one that other consumers declare is not left alone.
func (k *keepalive) begin(queue, dead string) {
	k.name = codec.DelayStem(queue) + "test." + rand.Text()[:10]
	if exchange, queue := parseDest(dead); exchange == "" && queue != "" && !k.src.cfg.Declare.isZero() {
		k.fixed = queue
		signal(k.wake)
	}
}

// hold keeps the delay queue until what was just sent into it is due.
func (k *keepalive) hold(name string, delay time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if due := time.Now().Add(delay + keepMargin); due.After(k.until[name]) {
		k.until[name] = due
	}
	signal(k.wake)
}

// names are the queues to be declared now.
func (k *keepalive) names() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	if k.fixed != "" {
		all = append(all, k.fixed)
	}
	for name, due := range k.until {
		if time.Now().After(due) {
			delete(k.until, name)
			continue
		}
		all = append(all, name)
	}
	return all
}

// run waits for the first delayed message: most consumers never send one, and need no queue kept.
func (k *keepalive) run() {
	select {
	case <-k.wake:
	case <-k.gone:
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	test := expiryTest{failed: k.src.expiry.seen.Load()}
	if !test.failed && k.declareTest(ctx) == nil { // where it must not be declared it shows nothing
		test.gap = keepFirst
	}
	last := time.Now()
	timer := time.NewTimer(keepFirst)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-k.gone:
			k.removeTest(ctx)
			return
		}
		for _, name := range k.names() {
			k.renew(ctx, name)
		}
		if test.gap > 0 && !test.failed && time.Since(last) >= test.gap {
			test, last = k.test(ctx, test), time.Now()
		}
		timer.Reset(test.pause())
	}
}

// renew declares a queue that has to be there.
func (k *keepalive) renew(ctx context.Context, name string) {
	if err := k.passive(ctx, name); !deleted(err) {
		return
	}
	k.mu.Lock()
	delete(k.until, name)
	if k.fixed == name {
		k.fixed = ""
	}
	k.mu.Unlock()
	k.notices.Event(transport.Event{Kind: transport.EventNotice,
		Text: fmt.Sprintf("rabbitmq queue %q of %s was deleted with the messages in it, by a policy with expires or by hand", name, k.src.title())})
}

// test looks whether the test queue, which was left alone for so long, is still there.
func (k *keepalive) test(ctx context.Context, e expiryTest) expiryTest {
	err := k.passive(ctx, k.name)
	switch {
	case err == nil:
		return e.survived()
	case !deleted(err): // it shows nothing
		return e
	}
	e.failed = true
	if !k.src.expiry.seen.Swap(true) {
		err := expiresError(k.src.title(), k.src.name())
		k.notices.Event(transport.Event{Kind: transport.EventNotice, Err: err, Text: err.Error()})
	}
	return e
}

// expiresError is why no retry of a source waits in a delay queue.
func expiresError(title, source string) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: "hold retries of " + title + " at the broker", Source: source,
		Err:  errors.New("a policy deletes unused queues, with the messages in them, before the retry is due"),
		Hint: "retries wait here; exclude queues named longshore.delay.* and dead-letter queues from policies with expires"}
}

// passive declares a queue without changing it: that shows whether it exists, and RabbitMQ takes it
// for a use from which the expiry counts again.
func (k *keepalive) passive(ctx context.Context, name string) error {
	return k.ask(ctx, func(ch conn.Channel) error {
		_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
}

// declareTest makes the test queue, which goes away by itself where removeTest cannot.
func (k *keepalive) declareTest(ctx context.Context) error {
	return k.ask(ctx, func(ch conn.Channel) error {
		_, err := ch.QueueDeclare(k.name, true, false, false, false,
			amqp091.Table{"x-queue-type": string(Classic), "x-expires": (3 * keepMost).Milliseconds()})
		return err
	})
}

// removeTest deletes the test queue early; without that the broker does it when it expires.
func (k *keepalive) removeTest(ctx context.Context) {
	if k.sess.Ended() {
		return
	}
	_ = k.ask(ctx, func(ch conn.Channel) error {
		_, err := ch.QueueDelete(k.name, false, false, false)
		return err
	})
}

// ask uses a channel of its own for each request, since a refusal closes it.
func (k *keepalive) ask(ctx context.Context, f func(conn.Channel) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return k.sess.Scratch(ctx, f)
}
