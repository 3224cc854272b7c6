package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/amqp"
)

// F-G01 (a): a quorum queue's delivery limit counts the record that fails, not its neighbours.
func TestDeliveryLimitCountsOnlyTheFailingRecord(t *testing.T) {
	url, l := brokertest.AMQP(t), oracle.New()
	q := newRabbitQueue(t, url, "orders", amqp091.Table{"x-queue-type": "quorum", "x-delivery-limit": 3, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dlq"})
	dlq := q.also("orders.dlq", nil)
	q.publish(l, 0, 21, 0)
	var failures atomic.Int64
	c := consumeFrom(t, amqp.New(url, amqp.Config{}).Queue("orders", amqp.QueueConfig{DeadLettered: true}), container.Config{
		Workers:    container.Workers{Min: 4, Max: 4},
		Redelivery: container.Redelivery{MaxAttempts: 4, Backoff: container.Backoff{Initial: 50 * time.Millisecond, Max: 100 * time.Millisecond}},
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterNative},
	}, func(_ context.Context, d *longshore.Delivery) error {
		if string(d.Body) == "0" {
			failures.Add(1)
			return errors.New("always")
		}
		<-time.After(20 * time.Millisecond)
		l.Begin(string(d.Body), "")(true)
		return nil
	})
	eventually(t, 20*time.Second, "the neighbours are done", func() bool { return l.Done() == 20 })
	eventually(t, 20*time.Second, "the failing one is dead", func() bool { ready, _ := dlq.depth(); return ready == 1 })
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if n := failures.Load(); n != 4 {
		t.Errorf("the handler ran %d times, want 4", n)
	}
	dlq.drainInto(l)
	check(t, l, oracle.Allow{})
}

// F-G01 (b): orderly restarts do not use up the limit.
func TestOrderlyRestartsDoNotUseUpTheDeliveryLimit(t *testing.T) {
	url, l := brokertest.AMQP(t), oracle.New()
	q := newRabbitQueue(t, url, "orders", amqp091.Table{"x-queue-type": "quorum", "x-delivery-limit": 3, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dlq"})
	dlq := q.also("orders.dlq", nil)
	q.publish(l, 0, 100, 0)
	work := func(_ context.Context, d *longshore.Delivery) error {
		end := l.Begin(string(d.Body), "")
		<-time.After(30 * time.Millisecond)
		end(true)
		return nil
	}
	for i := range 7 {
		c := newContainer(t, amqp.New(url, amqp.Config{}).Queue("orders", amqp.QueueConfig{Prefetch: 20}),
			container.Config{Workers: container.Workers{Min: 2, Max: 2}, Name: fmt.Sprintf("restart %d", i)}, work)
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := l.Done()
		eventually(t, 10*time.Second, "some were handled", func() bool { return l.Done() > before+1 || l.Done() == 100 })
		if err := c.Stop(t.Context()); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	c := consume(t, url, "orders", container.Config{}, work)
	eventually(t, 20*time.Second, "all done", func() bool { return l.Done() == 100 })
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if ready, _ := dlq.depth(); ready != 0 {
		t.Errorf("%d dead-lettered by restarts", ready)
	}
	check(t, l, oracle.Allow{})
}

// F-G02: what foreign producers send gets a verdict; body and headers arrive unchanged.
func TestForeignMessagesEachGetAVerdict(t *testing.T) {
	url := brokertest.AMQP(t)
	q := newRabbitQueue(t, url, "orders", nil)
	dlq := q.also("orders.dlq", nil)
	type order struct{ ID string }
	var good atomic.Int64
	src := amqp.New(url, amqp.Config{}).Queue("orders", amqp.QueueConfig{})
	c, err := container.New(src, longshore.Typed(longshore.JSON{}, func(context.Context, order, *longshore.Delivery) error {
		good.Add(1)
		return nil
	}), container.Config{DeadLetter: container.DeadLetter{To: "orders.dlq"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	foreign := []amqp091.Publishing{
		{Body: nil}, {Body: []byte{}}, {Body: []byte("<xml/>")}, {Body: []byte("{")}, {Body: []byte{0xC3, 0x28, 0}},
		{Body: []byte(`{"ID":7}`)}, {Body: []byte("x"), ContentType: "application/unheard-of"}, {Body: []byte("x"), ContentEncoding: "rot13"},
		{Body: []byte("x"), Headers: amqp091.Table{"longshore-attempt": "many", "longshore-key": int32(4)}},
		{Body: []byte("x"), Headers: amqp091.Table{"nested": amqp091.Table{"a": []any{int8(1), "b", nil}}, "t": time.Unix(1, 0), "d": amqp091.Decimal{Scale: 2, Value: 3}}},
	}
	for i, p := range foreign {
		p.MessageId = fmt.Sprint(i)
		if err := q.ch.PublishWithContext(t.Context(), "", "orders", true, false, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.ch.PublishWithContext(t.Context(), "", "orders", true, false, amqp091.Publishing{Body: []byte(`{"ID":"good"}`)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "all ten are dead and the good one done", func() bool { ready, _ := dlq.depth(); return ready == len(foreign) && good.Load() == 1 })
	for _, d := range dlq.drainInto(oracle.New()) {
		var i int
		if _, err := fmt.Sscan(d.MessageId, &i); err != nil {
			t.Fatal(err)
		}
		if string(d.Body) != string(foreign[i].Body) {
			t.Errorf("%d: body %q, want %q", i, d.Body, foreign[i].Body)
		}
		for name, want := range foreign[i].Headers {
			got := fmt.Sprint(d.Headers[name])
			if b, ok := d.Headers[name].([]byte); ok { // the key, whatever type it came as
				got = string(b)
			}
			if name != "longshore-attempt" && got != fmt.Sprint(want) {
				t.Errorf("%d: header %s is %s, want %v", i, name, got, want)
			}
		}
		if d.Headers["longshore-dead-reason"] != string(longshore.CodeUndecodable) {
			t.Errorf("%d: reason %v", i, d.Headers["longshore-dead-reason"])
		}
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// F-G03: attempts first, then one dead-letter write, also while the destination is away.
func TestDeadLetterIsWrittenOnceAfterTheLastAttempt(t *testing.T) {
	url, l := brokertest.AMQP(t), oracle.New()
	q := newRabbitQueue(t, url, "orders", nil)
	q.publish(l, 0, 1, 0)
	var runs atomic.Int64
	var attempts sync.Map
	c := consume(t, url, "orders", container.Config{
		Redelivery: container.Redelivery{MaxAttempts: 4, Backoff: container.Backoff{Initial: 20 * time.Millisecond, Max: 50 * time.Millisecond}},
		DeadLetter: container.DeadLetter{To: "orders.dlq"},
	}, func(_ context.Context, d *longshore.Delivery) error {
		attempts.Store(int(runs.Add(1)), d.Attempt)
		return errors.New("always")
	})
	eventually(t, 10*time.Second, "a failed dead-letter write is counted", func() bool { return c.Stats().DeadLetterFailures > 0 })
	dlq := q.also("orders.dlq", nil)
	eventually(t, 40*time.Second, "it moved when the destination was there", func() bool { ready, _ := dlq.depth(); return ready == 1 })
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if runs.Load() != 4 {
		t.Errorf("the handler ran %d times, want 4", runs.Load())
	}
	for i := 1; i <= 4; i++ {
		if a, _ := attempts.Load(i); a != i {
			t.Errorf("call %d carried attempt %v", i, a)
		}
	}
	dlq.drainInto(l)
	check(t, l, oracle.Allow{})
}

// F-G04: failure headers do not grow, and a huge error text closes nothing.
func TestFailureHeadersDoNotGrow(t *testing.T) {
	url := brokertest.AMQP(t)
	q := newRabbitQueue(t, url, "orders", nil)
	dlq := q.also("orders.dlq", nil)
	huge := errors.New(strings.Repeat("überlang ", 1<<17))
	c := consume(t, url, "orders", container.Config{
		DeadLetter: container.DeadLetter{To: "orders.dlq", MaxHops: 20}, Redelivery: container.Redelivery{MaxAttempts: 1},
	}, func(context.Context, *longshore.Delivery) error { return huge })
	p := amqp091.Publishing{Body: []byte("x"), Headers: amqp091.Table{"mine": "kept"}}
	var first int
	for hop := range 10 {
		if err := q.ch.PublishWithContext(t.Context(), "", "orders", true, false, p); err != nil {
			t.Fatal(err)
		}
		var d amqp091.Delivery
		eventually(t, 10*time.Second, "dead-lettered", func() bool {
			var ok bool
			var err error
			if d, ok, err = dlq.ch.Get("orders.dlq", true); err != nil {
				t.Fatal(err)
			}
			return ok
		})
		size := 0
		for name, v := range d.Headers {
			size += len(name) + len(fmt.Sprint(v))
		}
		text, _ := d.Headers["longshore-dead-error"].(string)
		if len(text) > 512 || !utf8.ValidString(text) || d.Headers["mine"] != "kept" {
			t.Fatalf("hop %d: error text of %d bytes, valid %v, headers %d", hop, len(text), utf8.ValidString(text), len(d.Headers))
		}
		if hop == 1 {
			first = size
		}
		if hop > 1 && size > first+8 {
			t.Errorf("hop %d: headers grew from %d to %d bytes", hop, first, size)
		}
		p.Headers = d.Headers
	}
	if s := c.Stats(); total(s.Reopens) != 0 {
		t.Errorf("a channel or connection was closed: %d reopens", total(s.Reopens))
	}
}

// F-G05: a short delay does not wait behind a long one.
func TestShortRetryDelayDoesNotWaitBehindALongOne(t *testing.T) {
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		url := brokertest.AMQP(t)
		q := newRabbitQueue(t, url, "orders", args)
		again := make(chan time.Duration, 2)
		var first sync.Map
		c := consume(t, url, "orders", container.Config{}, func(_ context.Context, d *longshore.Delivery) error {
			body := string(d.Body)
			if began, seen := first.LoadOrStore(body, time.Now()); seen {
				if body == "short" {
					again <- time.Since(began.(time.Time)) //nolint:errcheck // stored above
				}
				return nil
			}
			if body == "long" {
				return longshore.Retry(nil, 30*time.Second)
			}
			return longshore.Retry(nil, time.Second)
		})
		for _, body := range []string{"long", "short"} {
			if err := q.ch.PublishWithContext(t.Context(), "", "orders", true, false, amqp091.Publishing{Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case took := <-again:
			if took < time.Second || took > 3*time.Second {
				t.Errorf("again after %v, want 1 to 2 s", took)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the short one waits behind the long one")
		}
		if err := c.Stop(t.Context()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
}

// F-E06: nothing configured and a large backlog.
func TestHoldsOnlyTheDocumentedDefault(t *testing.T) {
	url, l := brokertest.AMQP(t), oracle.New()
	q := newRabbitQueue(t, url, "orders", nil)
	q.publish(l, 0, 5000, 0)
	block := make(chan struct{})
	c := consume(t, url, "orders", container.Config{}, func(context.Context, *longshore.Delivery) error { <-block; return nil })
	holds(t, 3*time.Second, "at most 250 are unacknowledged", func() bool { ready, _ := q.depth(); return 5000-ready <= 250 })
	second := consume(t, url, "orders", container.Config{Name: "second"}, record(l))
	eventually(t, 5*time.Second, "a second instance gets its share", func() bool { return l.Done() > 100 })
	close(block)
	if err := errors.Join(c.Stop(t.Context()), second.Stop(t.Context())); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// F-E07, F-F04: one slow record and one that waits for its retry hold nobody up.
func TestOneSlowRecordHoldsNobodyUp(t *testing.T) {
	for name, order := range map[string]container.Order{"unordered": container.Unordered, "by key": container.ByKey} {
		t.Run(name, func(t *testing.T) {
			url, l := brokertest.AMQP(t), oracle.New()
			q := newRabbitQueue(t, url, "orders", nil)
			release := make(chan struct{})
			slow := make(chan struct{})
			c := consume(t, url, "orders", container.Config{Workers: container.Workers{Min: 2, Max: 2}, Order: order},
				func(_ context.Context, d *longshore.Delivery) error {
					if string(d.Body) == "0" {
						close(slow)
						<-release
					}
					l.Begin(string(d.Body), string(d.Key))(true)
					return nil
				})
			q.publish(l, 0, 1, 2000)
			<-slow
			q.publish(l, 1, 1000, 2000)
			eventually(t, 10*time.Second, "1,000 quick ones are done while the slow one runs", func() bool { return l.Done() == 1000 })
			close(release)
			eventually(t, 5*time.Second, "the slow one too", func() bool { return l.Done() == 1001 })
			if err := c.Stop(t.Context()); err != nil {
				t.Errorf("stop: %v", err)
			}
			check(t, l, oracle.Allow{})
		})
	}
}
