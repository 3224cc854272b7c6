package transporttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func publishChecks() []check {
	return []check{
		{name: "publish", run: publishes},
		{name: "publish-partial", run: publishesPartly},
		{name: "publish-dated", run: publishesDated},
		{name: "publish-failure", needs: needs("FailPublish"), run: publishFails},
		{name: "publish-confirmed", needs: needs("Stall"), run: publishConfirmed},
		{name: "publish-concurrent", run: publishesConcurrently},
		{name: "publish-closed", run: publisherCloses},
	}
}

// outlet returns a queue with its publisher, or notes that there is none.
func (e *env) outlet() (src transport.Source, p transport.Publisher, dest string) {
	e.Helper()
	src = e.h.Source(e)
	p, dest = e.publisher(src)
	if p == nil {
		e.skip("the source does not implement transport.Outlet")
		return src, nil, ""
	}
	e.Cleanup(func() {
		if back, _ := e.attempt(e.h.Patience, p.Close); !back {
			e.Errorf("Publisher.Close did not return")
		}
	})
	return src, p, dest
}

// A message may be changed after Publish returned, except for its bytes.
func publishes(e *env) {
	src, p, dest := e.outlet()
	if p == nil {
		return
	}
	m := &longshore.Message{Key: []byte("k"), Body: []byte("one"), Headers: longshore.Headers{{Name: "n", Value: "1"}}}
	for _, body := range []string{"one", "two"} {
		m.Body = []byte(body)
		m.Headers[0].Value = body
		e.must("Publish", func(ctx context.Context) error { return p.Publish(ctx, dest, m) })
	}
	m.Body, m.Headers[0].Value = []byte("changed"), "changed"
	s := e.open(src, transport.OpenOptions{})
	var got []string
	for range 2 {
		d := s.take(1)[0]
		got = append(got, string(d.Body)+"/"+d.Headers.String("n"))
		s.ack(d)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"one/one", "two/two"}) {
		e.Errorf("published one/one and two/two with one Message, received %v", got)
	}
}

// One that cannot be sent does not hold up its neighbours. F-I01
func publishesPartly(e *env) {
	src, p, dest := e.outlet()
	if p == nil {
		return
	}
	bad := &longshore.Message{Body: []byte("bad"), Headers: longshore.Headers{{Name: "x", Value: struct{ A int }{1}}}}
	good := func(b string) *longshore.Message { return &longshore.Message{Key: []byte(b), Body: []byte(b)} }
	err := e.do("Publish", func(ctx context.Context) error { return p.Publish(ctx, dest, good("a"), bad, good("b")) })
	var partial *transport.PartialError
	switch {
	case !errors.As(err, &partial):
		e.Errorf("Publish of three, one with a header that cannot be sent: got %v, want a *PartialError", err)
	case !slices.Equal(partial.Indexes(), []int{1}) || partial.Total != 3:
		e.Errorf("failed are %v of %d, want [1] of 3", partial.Indexes(), partial.Total)
	default:
		e.wants("error of the message", partial.Failed[1], longshore.CodeBadHeader)
	}
	e.holds(src, "after one of three could not be sent", "a", "b")
}

// A message's own time is content: it shortens no deadline, also not that of messages
// that are sent alongside it. F-N01
func publishesDated(e *env) {
	src, p, dest := e.outlet()
	if p == nil {
		return
	}
	ages := map[string]time.Duration{
		"31s-ago": -31 * time.Second, "1h-ago": -time.Hour, "23h-ago": -23 * time.Hour, "25h-ago": -25 * time.Hour, "in-2-days": 48 * time.Hour,
	}
	now := time.Now()
	msgs := map[string]*longshore.Message{"1970": {Timestamp: time.Unix(1, 0)}, "undated": {}}
	for name, age := range ages {
		msgs[name] = &longshore.Message{Timestamp: now.Add(age)}
	}
	var want []string
	for name, m := range msgs {
		want = append(want, name, name+"-beside")
		m.Key, m.Body = []byte("k"), []byte(name)
		beside := &longshore.Message{Key: []byte("k"), Body: []byte(name + "-beside")}
		if err := e.do("Publish", func(ctx context.Context) error { return p.Publish(ctx, dest, m, beside) }); err != nil {
			e.Errorf("Publish of a message dated %s with one that has no date: %v", name, err)
		}
	}
	e.holds(src, "after messages of all ages", want...)
}

func publishFails(e *env) {
	src, p, dest := e.outlet()
	if p == nil {
		return
	}
	send := func(body string) error {
		return e.do("Publish", func(ctx context.Context) error {
			return p.Publish(ctx, dest, &longshore.Message{Key: []byte("k"), Body: []byte(body)})
		})
	}
	e.h.FailPublish(e, src)
	if err := send("refused"); err == nil {
		e.Errorf("Publish returned nil although the broker refused the message")
	}
	if err := send("taken"); err != nil {
		e.Errorf("Publish after a refused one: %v", err)
	}
	e.holds(src, "after a refused message", "taken")
}

// Publish returns when the broker has confirmed, not before.
func publishConfirmed(e *env) {
	src, p, dest := e.outlet()
	if p == nil {
		return
	}
	resume := e.h.Stall(e, src)
	var err error
	back, _ := e.attempt(e.h.Quiet, func(ctx context.Context) error {
		err = p.Publish(ctx, dest, &longshore.Message{Key: []byte("k"), Body: []byte("a")})
		return err
	})
	resume()
	if !back {
		e.Fatalf("Publish did not return %s after its context had ended", e.grace())
	}
	if err == nil {
		e.Errorf("Publish returned nil although the broker answered nothing")
	}
}

func publishesConcurrently(e *env) {
	src, p, dest := e.outlet()
	if p == nil {
		return
	}
	const senders, each = 8, 10
	errs := make(chan error, senders*each)
	var want []string
	var all sync.WaitGroup
	for i := range senders {
		for j := range each {
			want = append(want, fmt.Sprintf("m%d-%d", i, j))
		}
		all.Go(func() {
			for j := range each {
				ctx, cancel := context.WithTimeout(context.Background(), e.h.Patience)
				body := fmt.Appendf(nil, "m%d-%d", i, j)
				errs <- p.Publish(ctx, dest, &longshore.Message{Key: body, Body: body})
				cancel()
			}
		})
	}
	e.must("concurrent Publish", func(context.Context) error { all.Wait(); return nil })
	close(errs)
	for err := range errs {
		if err != nil {
			e.Errorf("Publish: %v", err)
		}
	}
	e.holds(src, "after concurrent publishing", want...)
}

func publisherCloses(e *env) {
	_, p, dest := e.outlet()
	if p == nil {
		return
	}
	e.must("Publisher.Close", p.Close)
	e.must("second Publisher.Close", p.Close)
	start := time.Now()
	err := e.do("Publish", func(ctx context.Context) error { return p.Publish(ctx, dest, &longshore.Message{Body: []byte("a")}) })
	e.wants("Publish after Close", err, longshore.ErrClosed)
	if took := time.Since(start); took > e.h.Patience/2 {
		e.Errorf("Publish after Close took %s", took)
	}
}
