package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// bubble runs f with a server in a bubble, where time passes at once.
func bubble(t *testing.T, f func(t *testing.T, s *sqstest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, sqstest.New(t, sqstest.Config{NoPort: true})) })
}

// wait lets time pass.
func wait(d time.Duration) { <-time.After(d) }

// watcher is an observer that remembers.
type watcher struct {
	mu     sync.Mutex
	lost   []*longshore.Delivery
	causes []error
	failed []error
	downs  []error
	events []transport.Event
}

func (w *watcher) Lost(ds []*longshore.Delivery, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = append(w.lost, ds...)
	w.causes = append(w.causes, cause)
}

func (w *watcher) SettleFailed(_ *longshore.Delivery, _ longshore.Settlement, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, err)
}

func (w *watcher) Down(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.downs = append(w.downs, err)
}

func (w *watcher) Event(e transport.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *watcher) counts() (lost, failed, downs int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lost), len(w.failed), len(w.downs)
}

// seen are the events so far.
func (w *watcher) seen() []transport.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

func open(t testing.TB, src transport.Source, w *watcher) transport.Consumer {
	t.Helper()
	opts := transport.OpenOptions{}
	if w != nil {
		opts.Observer = w
	}
	c, err := src.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx) // the test closes it if it gets that far
	})
	return c
}

// take receives exactly n.
func take(t testing.TB, c transport.Consumer, n int) []*longshore.Delivery {
	t.Helper()
	var out []*longshore.Delivery
	for len(out) < n {
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		ds, err := c.Receive(ctx, n-len(out))
		cancel()
		if err != nil {
			t.Fatalf("Receive, %d of %d came: %v", len(out), n, err)
		}
		out = append(out, ds...)
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// publish sends bodies with a key.
func publish(t testing.TB, b *sqs.Broker, queue, key string, bodies ...string) {
	t.Helper()
	p, err := b.Publisher(sqs.PublisherConfig{})
	must(t, err)
	var msgs []*longshore.Message
	for _, body := range bodies {
		m := &longshore.Message{Body: []byte(body)}
		if key != "" {
			m.Key = []byte(key)
		}
		msgs = append(msgs, m)
	}
	must(t, p.Publish(t.Context(), queue, msgs...))
	must(t, p.Close(t.Context()))
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("m%05d", i)
	}
	return out
}

// journal is what handlers saw, in order.
type journal struct {
	mu   sync.Mutex
	seen []string
}

func (j *journal) add(s string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen = append(j.seen, s)
	n := 0
	for _, x := range j.seen {
		if x == s {
			n++
		}
	}
	return n
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.seen)
}

func (j *journal) len() int { return len(j.all()) }

// run starts a container and returns how to stop it.
func run(t testing.TB, src transport.Source, h longshore.HandlerFunc, cfg container.Config) (c *container.ListenerContainer, stop func()) {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	c, err := container.New(src, h, cfg)
	must(t, err)
	must(t, c.Start(context.WithoutCancel(t.Context())))
	var once sync.Once
	stop = func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
			defer cancel()
			if err := c.Stop(ctx); err != nil {
				t.Errorf("Stop: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return c, stop
}

// until polls for a condition, in real time or the bubble's.
func until(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(limit)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			if !cond() {
				t.Fatalf("not seen within %s: %s", limit, what)
			}
			return
		}
	}
}

func state(t testing.TB, s *sqstest.Server, queue string) sqstest.QueueState {
	t.Helper()
	st, ok := s.Queue(queue)
	if !ok {
		t.Fatalf("no queue %s", queue)
	}
	return st
}

func redrive(s *sqstest.Server, dead string, limit int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, s.ARN(dead), limit)
}

var errBad = errors.New("bad")

// ratePerSecond is a gate that lets one start a second.
type ratePerSecond struct {
	mu   sync.Mutex
	next time.Time
}

func (g *ratePerSecond) TryAcquire(now time.Time) (bool, time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Before(g.next) {
		return false, g.next
	}
	g.next = now.Add(time.Second)
	return true, time.Time{}
}

func (g *ratePerSecond) Release()               {}
func (g *ratePerSecond) Limits() (int, float64) { return -1, 1 }
func (g *ratePerSecond) Watch(func()) func()    { return func() {} }

// keyProvider gives an access key that may change.
type keyProvider func() string

func (p keyProvider) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: p(), SecretAccessKey: "x"}, nil
}

// newTransport is an HTTP client whose connections end with the test.
func newTransport(t testing.TB) *http.Client {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// withoutEnd is the test's context for clean-ups.
func withoutEnd(t testing.TB) context.Context { return context.WithoutCancel(t.Context()) }
