package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
)

func quickRetry(attempts int) container.Redelivery {
	return container.Redelivery{MaxAttempts: attempts, Backoff: container.Backoff{Initial: 20 * time.Millisecond, Max: 50 * time.Millisecond}}
}

// F-G01 (a), F-G03: what always fails is dead-lettered after the limit, once, and
// its neighbours are not.
func TestSQSPoisonIsDeadLetteredAlone(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		for _, own := range []bool{true, false} { // the redrive policy's queue, the container's
			name, dead := l.redrive(100)
			cfg := container.Config{Redelivery: quickRetry(4)}
			if !own {
				cfg.DeadLetter.To = dead
			}
			led := oracle.New()
			l.publish(led, name, 0, 21, 0)
			var mu sync.Mutex
			calls := 0
			c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), cfg, func(_ context.Context, d *longshore.Delivery) error {
				end := led.Begin(string(d.Body), "")
				end(string(d.Body) != "5")
				if string(d.Body) == "5" {
					mu.Lock()
					defer mu.Unlock()
					calls++
					return errors.New("never")
				}
				return nil
			})
			eventually(l.t, 30*time.Second, "all have a verdict", func() bool { v, _ := l.counts(dead); return v == 1 && l.empty(name) })
			stopped(l.t, c)
			l.drain(dead, func(m types.Message) { led.Dead(aws.ToString(m.Body)) })
			check(l.t, led, oracle.Allow{})
			mu.Lock()
			if calls != 4 {
				l.t.Errorf("own %t: %d calls of the poisonous one, want 4", own, calls)
			}
			mu.Unlock()
		}
	})
}

// F-G01 (b): six orderly restarts with a backlog, a redrive policy of three
// receives: dead-lettered 0.
func TestSQSRestartsDeadLetterNothing(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name, dead := l.redrive(3)
		led := oracle.New()
		l.publish(led, name, 0, 100, 0)
		src := l.broker().Queue(name, sqs.QueueConfig{})
		slow := func(_ context.Context, d *longshore.Delivery) error {
			end := led.Begin(string(d.Body), "")
			<-time.After(20 * time.Millisecond)
			end(true)
			return nil
		}
		for range 6 {
			n := led.Done()
			c := consumeFrom(l.t, src, container.Config{Workers: fixed(2)}, slow)
			eventually(l.t, 20*time.Second, "some are done", func() bool { return led.Done() >= min(n+3, 100) })
			stopped(l.t, c)
		}
		c := consumeFrom(l.t, src, container.Config{Workers: fixed(10)}, slow)
		eventually(l.t, 30*time.Second, "all are done", func() bool { return led.Done() == 100 })
		stopped(l.t, c)
		l.idle(name)
		if v, h := l.counts(dead); v+h != 0 {
			l.t.Errorf("%d dead-lettered", v+h)
		}
		check(l.t, led, oracle.Allow{})
	})
}

// F-G02, F-I01, F-I05, F-I06: foreign messages of every kind get a verdict, each once, and
// lie in the dead-letter queue as they came.
func TestSQSForeignMessagesMoveAsTheyCame(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name, dead := l.queue("", nil), l.queue("", nil)
		str := func(kind, v string) types.MessageAttributeValue {
			return types.MessageAttributeValue{DataType: &kind, StringValue: &v}
		}
		bin := func(kind string, v []byte) types.MessageAttributeValue {
			return types.MessageAttributeValue{DataType: &kind, BinaryValue: v}
		}
		at := l.at(name)
		sent := map[string]map[string]types.MessageAttributeValue{
			"plain":     nil,
			"{broken":   {"Content-Type": str("String", "application/json")},
			"unknown":   {"Content-Type": str("String", "application/x-what"), "Content-Encoding": str("String", "zstd+rot13")},
			"binary":    {"b": bin("Binary", []byte{0, 1, 0xff, 0xc3, 0x28})},
			"typed":     {"s": str("String.mine", "x"), "n": str("Number.mine", "12"), "j": bin("Binary.gif", []byte("GIF"))},
			"number":    {"n": str("Number", "-12.50")},
			"markup":    {"h": str("String", "<script>\u00fc\t\n</script>")},
			"pretender": {"longshore-attempt": str("String", "99999999999999999999"), "longshore-dead-reason": str("String", "mine")},
			"many": {"a1": str("String", "1"), "a2": str("String", "2"), "a3": str("String", "3"), "a4": str("String", "4"), "a5": str("String", "5"),
				"a6": str("String", "6"), "a7": str("String", "7"), "a8": str("String", "8"), "a9": str("String", "9"), "a10": str("String", "10")},
			"fi\u00f1\u20ac\U0001f6a2 ": nil,
		}
		for body, attrs := range sent {
			if _, err := l.client.SendMessage(l.t.Context(), &awssqs.SendMessageInput{QueueUrl: at, MessageBody: &body, MessageAttributes: attrs}); err != nil {
				l.t.Fatal(body, err)
			}
		}
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{DeadLetter: container.DeadLetter{To: dead}, Redelivery: quickRetry(2)},
			func(context.Context, *longshore.Delivery) error { return longshore.Reject(errors.New("foreign")) })
		eventually(l.t, 30*time.Second, "all have moved", func() bool { v, _ := l.counts(dead); return v == len(sent) && l.empty(name) })
		stopped(l.t, c)
		back := l.read(dead, len(sent))
		for body, attrs := range sent {
			m := back[body]
			if m == nil {
				l.t.Errorf("%q did not come as it was: %d others", body, len(back))
				continue
			}
			if m.Headers.String("longshore-dead-reason") == "" || m.Headers.String("longshore-dead-reason") == "mine" {
				l.t.Errorf("%q: reason %q", body, m.Headers.String("longshore-dead-reason"))
			}
			for name, a := range attrs {
				want := a.BinaryValue
				if a.StringValue != nil {
					want = []byte(*a.StringValue)
				}
				if strings.HasPrefix(name, "longshore-") || strings.HasPrefix(name, "Content-") {
					continue // ours, and those that are fields of a message
				}
				if got := m.Headers.String(name); got != string(want) {
					l.t.Errorf("%q: %s is %q, was %q", body, name, got, want)
				}
			}
		}
	})
}

// read consumes n messages through the transport.
func (l *sqsLab) read(name string, n int) map[string]*longshore.Message {
	l.t.Helper()
	c, err := l.broker().Queue(name, sqs.QueueConfig{}).Open(l.t.Context(), transport.OpenOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(l.t.Context())) }()
	out := map[string]*longshore.Message{}
	for got := 0; got < n; {
		ctx, cancel := context.WithTimeout(l.t.Context(), 30*time.Second)
		ds, err := c.Receive(ctx, n-got)
		cancel()
		if err != nil {
			l.t.Fatalf("%d of %d came: %v", got, n, err)
		}
		for _, d := range ds {
			out[string(d.Body)] = d.Message.Clone()
			if err := d.Ack(l.t.Context()); err != nil {
				l.t.Error(err)
			}
		}
		got += len(ds)
	}
	return out
}

// F-G04: 1 MB of error text at each of many failures. The message moves, its
// headers stay few.
func TestSQSHeadersDoNotGrow(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name, dead := l.queue("", nil), l.queue("", nil)
		p, err := l.broker().Publisher(sqs.PublisherConfig{})
		if err != nil {
			l.t.Fatal(err)
		}
		m := &longshore.Message{Body: []byte("x")}
		for i := range 15 {
			m.Headers.Set(fmt.Sprintf("h%02d", i), fmt.Sprint("v", i))
		}
		if err := p.Publish(l.t.Context(), name, m); err != nil {
			l.t.Fatal(err)
		}
		defer func() { _ = p.Close(context.Background()) }()
		text := strings.Repeat("\u00e4\U0001f6a2", 1<<18)
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{DeadLetter: container.DeadLetter{To: dead}, Redelivery: quickRetry(20)},
			func(context.Context, *longshore.Delivery) error { return errors.New(text) })
		eventually(l.t, 60*time.Second, "it has moved", func() bool { v, _ := l.counts(dead); return v == 1 && l.empty(name) })
		stopped(l.t, c)
		back := l.read(dead, 1)["x"]
		if back == nil {
			l.t.Fatal("it is not as it was")
		}
		for i := range 15 {
			if got := back.Headers.String(fmt.Sprintf("h%02d", i)); got != fmt.Sprint("v", i) {
				l.t.Errorf("h%02d is %q", i, got)
			}
		}
		said := back.Headers.String("longshore-dead-error")
		if said == "" || len(said) > 512 || !utf8.ValidString(said) {
			l.t.Errorf("error of %d bytes", len(said))
		}
	})
}

// F-G05: a short delay does not wait behind a long one.
func TestSQSShortDelayDoesNotWaitBehindALongOne(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", map[string]string{"VisibilityTimeout": "60"})
		led := oracle.New()
		l.publish(led, name, 0, 30, 0)
		var mu sync.Mutex
		due := map[string]time.Time{}
		late := []time.Duration{}
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}},
			func(_ context.Context, d *longshore.Delivery) error {
				mu.Lock()
				defer mu.Unlock()
				end := led.Begin(string(d.Body), "")
				if at, ok := due[string(d.Body)]; ok {
					late = append(late, time.Since(at))
					end(true)
					return nil
				}
				end(false)
				delay := time.Minute
				if d.Body[len(d.Body)-1]%2 == 0 {
					delay = time.Duration(1+len(due)%3) * time.Second
				}
				due[string(d.Body)] = time.Now().Add(delay)
				return longshore.Retry(errors.New("later"), delay)
			})
		eventually(l.t, 30*time.Second, "the short ones are done", func() bool { return led.Done() == 15 })
		stopped(l.t, c)
		mu.Lock()
		defer mu.Unlock()
		for _, d := range late {
			if d < -time.Second || d > 5*time.Second {
				l.t.Errorf("came %v after it was due", d)
			}
		}
	})
}

// F-G06: any delay and any attempt number is harmless.
func TestSQSAnyDelayIsWithinBounds(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", nil)
		c, err := l.broker().Queue(name, sqs.QueueConfig{}).Open(l.t.Context(), transport.OpenOptions{})
		if err != nil {
			l.t.Fatal(err)
		}
		defer func() { _ = c.Close(context.WithoutCancel(l.t.Context())) }()
		led := oracle.New()
		for i, delay := range []time.Duration{0, 1, time.Millisecond, -time.Hour, math.MinInt64, math.MaxInt64, 12*time.Hour + 1} {
			l.publish(led, name, i, 1, 0)
			d := l.one(c)
			err := d.Nack(l.t.Context(), delay)
			if delay > 12*time.Hour {
				if !errors.Is(err, longshore.CodeUnsupported) || !d.Owned() {
					l.t.Errorf("%v: %v", delay, err)
				}
				err = d.Nack(l.t.Context(), 0)
			}
			if err != nil {
				l.t.Errorf("%v: %v", delay, err)
			}
			again := l.one(c)
			if again.Attempt != 2 {
				l.t.Errorf("%v: attempt %d", delay, again.Attempt)
			}
			if err := again.Ack(l.t.Context()); err != nil {
				l.t.Error(err)
			}
		}
	})
}

func (l *sqsLab) one(c transport.Consumer) *longshore.Delivery {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 20*time.Second)
	defer cancel()
	ds, err := c.Receive(ctx, 1)
	if err != nil {
		l.t.Fatal(err)
	}
	return ds[0]
}

// F-D06 on a real server, several rounds: the failed message holds back its group
// and only its group.
func TestSQSFailedMessageHoldsBackItsGroup(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue(".fifo", map[string]string{"VisibilityTimeout": "20"})
		led := oracle.New()
		l.publish(led, name, 0, 90, 9)
		var mu sync.Mutex
		seen, failed := map[string][]string{}, map[string]int{}
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{Workers: fixed(10), Redelivery: quickRetry(10)},
			func(_ context.Context, d *longshore.Delivery) error {
				id, key := string(d.Body), string(d.Key)
				end := led.Begin(id, key)
				mu.Lock()
				defer mu.Unlock()
				if len(id)%2 == 0 && id[0]%3 == 0 && failed[id] < 2 {
					failed[id]++
					end(false)
					return errors.New("not yet")
				}
				seen[key] = append(seen[key], id)
				end(true)
				return nil
			})
		eventually(l.t, 19*time.Second, "all are done before any timeout ends", func() bool { return led.Done() == 90 })
		stopped(l.t, c)
		l.idle(name)
		check(l.t, led, oracle.Allow{Ordered: true})
	})
}

// F-I02, F-I03, F-I04: bodies and headers, byte for byte, nil and empty apart.
func TestSQSContentIsByteForByte(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", nil)
		p, err := l.broker().Publisher(sqs.PublisherConfig{})
		if err != nil {
			l.t.Fatal(err)
		}
		defer func() { _ = p.Close(context.Background()) }()
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		bodies := [][]byte{nil, {}, []byte(" "), all, []byte("\ufffe\uffff"), []byte("\xed\xa0\x80"), []byte("aGVsbG8="), []byte(`{"a":1}`), bytes.Repeat([]byte("x"), 200_000)}
		for i, body := range bodies {
			m := &longshore.Message{Body: body}
			for h := range 3 * i {
				m.Headers = append(m.Headers, longshore.Header{Name: fmt.Sprintf("X h/%d\u00fc", h%7), Value: all[h : h*4]})
			}
			m.Headers = append(m.Headers, longshore.Header{Name: "", Value: nil}, longshore.Header{Name: "AWS.x", Value: []byte{}})
			if err := p.Publish(l.t.Context(), name, m); err != nil {
				l.t.Fatalf("body %d: %v", i, err)
			}
			c, err := l.broker().Queue(name, sqs.QueueConfig{}).Open(l.t.Context(), transport.OpenOptions{})
			if err != nil {
				l.t.Fatal(err)
			}
			d := l.one(c)
			if !bytes.Equal(d.Body, body) || (d.Body == nil) != (body == nil) {
				l.t.Errorf("body %d: %q", i, d.Body)
			}
			got := slices.DeleteFunc(slices.Clone(d.Headers), func(h longshore.Header) bool { return h.Name == longshore.HeaderID }) // the publisher's
			if !slices.EqualFunc(got, m.Headers, func(a, b longshore.Header) bool {
				return a.Name == b.Name && fmt.Sprint(a.Value) == fmt.Sprint(b.Value)
			}) {
				l.t.Errorf("body %d: headers %v, want %v", i, d.Headers, m.Headers)
			}
			if err := d.Ack(l.t.Context()); err != nil {
				l.t.Error(err)
			}
			if err := c.Close(l.t.Context()); err != nil {
				l.t.Error(err)
			}
			name = l.queue("", nil) // without the polls of before
		}
	})
}
