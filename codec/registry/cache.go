package registry

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
)

// cache keeps the most used schemas. Those who ask for one at once share one request.
type cache[K comparable] struct {
	max int

	mu      sync.Mutex
	entries map[K]*list.Element
	order   *list.List // of *entry[K], the last used first
	flights map[K]*flight
}

type entry[K comparable] struct {
	key     K
	schema  Schema
	expires time.Time // zero: never
}

// flight is a request under way.
type flight struct {
	done   chan struct{}
	schema Schema
	err    error
}

func newCache[K comparable](size int) *cache[K] {
	return &cache[K]{max: size, entries: map[K]*list.Element{}, order: list.New(), flights: map[K]*flight{}}
}

// get returns what is kept, or fetches it. What has expired goes on for as long as it
// cannot be had again for reasons that are not its own.
func (c *cache[K]) get(ctx context.Context, key K, now time.Time, fetch func(context.Context) (Schema, time.Time, error)) (Schema, error) {
	c.mu.Lock()
	var old *entry[K]
	if at := c.entries[key]; at != nil {
		c.order.MoveToFront(at)
		old, _ = at.Value.(*entry[K])
		if old.expires.IsZero() || now.Before(old.expires) {
			c.mu.Unlock()
			return old.schema, nil
		}
	}
	f, joined := c.flights[key], true
	if f == nil {
		f, joined = &flight{done: make(chan struct{})}, false
		c.flights[key] = f
	}
	c.mu.Unlock()
	if joined {
		select {
		case <-f.done:
		case <-ctx.Done():
			return Schema{}, longshore.Release(context.Cause(ctx), 0)
		}
	} else {
		c.fly(ctx, key, f, fetch)
	}
	if v, _ := longshore.VerdictOf(f.err); v == longshore.VerdictRelease && old != nil {
		return old.schema, nil
	}
	return f.schema, f.err
}

// fly fetches for all who wait; they hear of a panic too.
func (c *cache[K]) fly(ctx context.Context, key K, f *flight, fetch func(context.Context) (Schema, time.Time, error)) {
	var expires time.Time
	f.err = longshore.Release(errors.New("the look-up broke off"), 0)
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.flights, key)
		close(f.done)
		if f.err == nil {
			c.keep(key, f.schema, expires)
		}
	}()
	f.schema, expires, f.err = fetch(ctx)
}

// keep is called with the lock held.
func (c *cache[K]) keep(key K, s Schema, expires time.Time) {
	if at := c.entries[key]; at != nil {
		c.order.Remove(at)
	}
	c.entries[key] = c.order.PushFront(&entry[K]{key: key, schema: s, expires: expires})
	for c.order.Len() > c.max {
		last := c.order.Back()
		if e, ok := c.order.Remove(last).(*entry[K]); ok {
			delete(c.entries, e.key)
		}
	}
}
