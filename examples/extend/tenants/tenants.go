// Package tenants is a middleware with everything that one may have.
package tenants

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/longshore-go/longshore"
)

// Middleware rejects messages of unknown tenants and counts those of the known ones.
// It is safe for concurrent use; one may serve several containers.
type Middleware struct {
	header string
	known  map[string]bool

	mu    sync.Mutex
	count map[string]int
}

// New makes one that reads the tenant from a header.
func New(header string, known ...string) *Middleware {
	m := &Middleware{header: header, known: map[string]bool{}, count: map[string]int{}}
	for _, k := range known {
		m.known[k] = true
	}
	return m
}

// Name is for logs and errors.
func (*Middleware) Name() string { return "tenants" }

// Check is asked at each start of a container; an error fails it.
func (m *Middleware) Check(_ context.Context, f longshore.Facts) error {
	if m.header == "" || len(m.known) == 0 {
		return &longshore.Error{Code: longshore.CodeConfig, Source: f.Container, Op: fmt.Sprintf("start container %q with the middleware tenants", f.Container),
			Err: errors.New("the header or the tenants are missing"), Hint: "give both to tenants.New"}
	}
	return nil
}

// Wrap runs the handler for known tenants only.
func (m *Middleware) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		if err := m.judge(d); err != nil {
			return err
		}
		return next.Handle(ctx, d)
	})
}

// WrapBatch does the same for batches: without it a batch container refuses the
// middleware. The handler gets the known ones, and its errors their places.
func (m *Middleware) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		failed := longshore.BatchError{}
		var good []*longshore.Delivery
		var places []int
		for i, d := range ds {
			if err := m.judge(d); err != nil {
				failed[i] = err
				continue
			}
			good, places = append(good, d), append(places, i)
		}
		if len(good) == 0 {
			return failed
		}
		err := next.HandleBatch(ctx, good)
		var each longshore.BatchError
		switch {
		case errors.As(err, &each):
			for i, e := range each {
				failed[places[i]] = e
			}
		case err != nil:
			for _, i := range places {
				failed[i] = err
			}
		}
		return failed
	})
}

// Outcome hears what became of each message, with the container's own clock.
func (m *Middleware) Outcome(d *longshore.Delivery, o longshore.Outcome) {
	if o.Verdict != longshore.VerdictAck {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count[d.Received().Headers.String(m.header)]++
}

// Done is how many messages of a tenant were acknowledged.
func (m *Middleware) Done(tenant string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count[tenant]
}

func (m *Middleware) judge(d *longshore.Delivery) error {
	if m.known[d.Headers.String(m.header)] {
		return nil
	}
	return longshore.Reject(errors.New("the tenant is not known"))
}
