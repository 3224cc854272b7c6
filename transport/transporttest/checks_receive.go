package transporttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func receiveChecks() []check {
	return []check{
		{name: "receive", run: receives},
		{name: "receive-max", run: receivesAtMost},
		{name: "receive-waits", run: receiveWaits},
		{name: "receive-canceled-loses-nothing", run: canceledReceiveLosesNothing},
		{name: "key-order", run: keepsKeyOrder},
		{name: "key-order-redelivered", run: keepsKeyOrderWhenRedelivered},
		{name: "key-order-handed-over", run: keepsKeyOrderOverHandOvers},
	}
}

func receives(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	before := time.Now()
	e.publish(src, bodies(3)...)
	ds := s.take(3)
	if got := sorted(bodiesOf(ds)); !slices.Equal(got, bodies(3)) {
		e.Errorf("received %v, published were %v", got, bodies(3))
	}
	for _, d := range ds {
		if d.Attempt != 1 || d.Origin.Redelivered {
			e.Errorf("%s: attempt %d, redelivered %t at the first delivery", d.Body, d.Attempt, d.Origin.Redelivered)
		}
		if d.Origin.Transport() == "" || d.Origin.Source() == "" || d.Origin.Topic == "" {
			e.Errorf("%s: Origin must name transport, source and topic: %+v", d.Body, d.Origin)
		}
		if at := d.Origin.ReceivedAt; at.Before(before.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
			e.Errorf("%s: Origin.ReceivedAt is %v", d.Body, at)
		}
		if !d.Owned() || d.Context().Err() != nil {
			e.Errorf("%s: must be owned and its context alive", d.Body)
		}
	}
}

func receivesAtMost(e *env) {
	src := e.h.Source(e)
	e.publish(src, bodies(10)...)
	s := e.open(src, transport.OpenOptions{})
	var got []string
	for len(got) < 10 { // within fails the check if more than asked for come
		most := 1 + len(got)%3
		ds, err := s.within(e.h.Patience, most)
		if err != nil {
			e.Fatalf("Receive: %v", err)
		}
		got = append(got, bodiesOf(ds)...)
		s.ack(ds...)
	}
	if !slices.Equal(sorted(got), bodies(10)) {
		e.Errorf("received %v, published were 10 different ones", got)
	}
}

func receiveWaits(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	_, err := s.within(e.h.Quiet, 1)
	e.wants("Receive on an empty queue until its context ended", err, context.DeadlineExceeded)
	got := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), e.h.Patience)
		defer cancel()
		_, err := s.Receive(ctx, 1)
		got <- err
	}()
	e.publish(src, "late")
	if err := <-got; err != nil {
		e.Errorf("Receive that waited when a message was published: %v", err)
	}
}

// A Receive whose context ends returns what it has or takes nothing.
func canceledReceiveLosesNothing(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	const n = 40
	e.publish(src, bodies(n)[:n/2]...) // some are there, some come in between
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for _, b := range bodies(n)[n/2:] {
			e.publish(src, b)
		}
	}()
	defer func() { <-sent }()
	var got []string
	deadline := time.Now().Add(e.h.Patience)
	for i := 0; len(got) < n && time.Now().Before(deadline); i++ {
		wait := time.Duration(i%5) * 200 * time.Microsecond
		if i > 20*n { // it was cut off often enough
			wait = e.h.Quiet
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		ds, err := s.Receive(ctx, 1)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			e.Fatalf("Receive: %v", err)
		}
		got = append(got, bodiesOf(ds)...)
		s.ack(ds...)
	}
	if !slices.Equal(sorted(got), bodies(n)) {
		e.Errorf("with contexts that end early %d of %d messages were received: %v", len(got), n, sorted(got))
	}
}

func keyed(keys, each int) []*longshore.Message {
	var msgs []*longshore.Message
	for i := range each {
		for k := range keys {
			msgs = append(msgs, &longshore.Message{Key: fmt.Appendf(nil, "k%d", k), Body: fmt.Appendf(nil, "%03d", i)})
		}
	}
	return msgs
}

func keepsKeyOrder(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	if s.caps.Ordering == longshore.OrderNone {
		e.without("Ordering is none")
		return
	}
	msgs := keyed(4, 8)
	e.send(src, msgs...)
	last := map[string]string{}
	for n := 0; n < len(msgs); n++ {
		d := s.take(1)[0]
		if key, body := string(d.Key), string(d.Body); body <= last[key] {
			e.Fatalf("key %s: %s came after %s", key, body, last[key])
		} else {
			last[key] = body
		}
		s.ack(d)
	}
}

// What was received and not settled comes back in order.
func keepsKeyOrderWhenRedelivered(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	if s.caps.Ordering == longshore.OrderNone {
		e.without("Ordering is none")
		return
	}
	e.send(src, keyed(2, 5)...)
	s.take(1)
	for range 3 {
		if _, err := s.within(e.h.Quiet, 1); err != nil {
			break // a broker that holds back the others of a key
		}
	}
	s.shut()
	s = e.open(src, transport.OpenOptions{})
	last := map[string]string{}
	for range 10 {
		d := s.take(1)[0]
		if key, body := string(d.Key), string(d.Body); body <= last[key] {
			e.Fatalf("redelivered, key %s: %s came after %s", key, body, last[key])
		} else {
			last[key] = body
		}
		s.ack(d)
	}
}

// Consumers of different sizes take over from each other, and each has something in
// hand when it ends: the order survives more than one such end.
// F-N35
func keepsKeyOrderOverHandOvers(e *env) {
	src := e.h.Source(e)
	if src.Capabilities().Ordering == longshore.OrderNone { // it may refuse to open with an order
		e.without("Ordering is none")
		return
	}
	msgs := keyed(2, 12)
	for i, size := range []int{16, 2, 8} {
		s := e.open(src, transport.OpenOptions{Ordered: true, Window: size, MaxWindow: size})
		if s.caps.Ordering == longshore.OrderNone {
			e.without("Ordering is none")
			return
		}
		if i == 0 {
			e.send(src, msgs...)
		}
		for taken := 0; taken < size; {
			ds, err := s.within(e.h.Quiet, size-taken)
			if err != nil {
				break // a broker that holds back the others of a key
			}
			taken += len(ds)
		}
		s.shut()
	}
	s := e.open(src, transport.OpenOptions{Ordered: true, Window: 16, MaxWindow: 16})
	last := map[string]string{}
	for range msgs {
		d := s.take(1)[0]
		if key, body := string(d.Key), string(d.Body); body <= last[key] {
			e.Fatalf("after several consumers, key %s: %s came after %s", key, body, last[key])
		} else {
			last[key] = body
		}
		s.ack(d)
	}
}
