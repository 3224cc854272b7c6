package throttle

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
)

// Keyed is a middleware that limits each key by itself: a tenant, an account, a
// dependency. Make one with [PerKey] or [PerKeyRate].
//
// What has to wait waits inside its worker, through Delivery.Wait; so many
// deliveries of one busy key can occupy all workers. Where a key may have one at a
// time only, container.OrderFunc with the same key does that without a worker.
//
// A wait that ends with the delivery's context (a drain, a timeout around it) gives
// the delivery back uncounted.
type Keyed struct {
	key func(*longshore.Delivery) string

	mu    sync.Mutex
	all   Limits
	own   map[string]Limits
	keys  map[string]*keyed
	swept time.Time
}

// keyed is the limiter of a key that is in use or was just now.
type keyed struct {
	limit *Limiter
	users int
	last  time.Time
}

// sweepEvery is how often keys with a rate that are out of use are looked for.
const sweepEvery = 10 * time.Second

// PerKey makes a middleware that lets permits deliveries of each key into the
// handler at once. 0 holds every key. Deliveries for which key returns "" are not
// limited. key must not change the delivery.
func PerKey(permits int, key func(*longshore.Delivery) string) *Keyed {
	return newKeyed(Limits{Permits: max(permits, 0), Rate: unlimited}, key)
}

// PerKeyRate makes a middleware that starts perSecond deliveries of each key, without
// a limit for how many run at once. Otherwise it is like [PerKey].
func PerKeyRate(perSecond float64, key func(*longshore.Delivery) string) *Keyed {
	return newKeyed(Limits{Permits: unlimited, Rate: sane(perSecond)}, key)
}

func newKeyed(all Limits, key func(*longshore.Delivery) string) *Keyed {
	return &Keyed{key: key, all: all, own: map[string]Limits{}, keys: map[string]*keyed{}}
}

// Name returns "throttle".
func (k *Keyed) Name() string { return "throttle" }

// Check refuses a middleware without a key function.
func (k *Keyed) Check(_ context.Context, f longshore.Facts) error {
	if k.key == nil {
		return &longshore.Error{Code: longshore.CodeConfig, Source: f.Container, Op: "throttle each key",
			Err: errors.New("the key function is nil"), Hint: "give PerKey a function of the delivery"}
	}
	return nil
}

// Wrap limits a handler.
func (k *Keyed) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		key := k.key(d)
		if key == "" {
			return next.Handle(ctx, d)
		}
		x := k.enter(key)
		defer k.exit(key, x)
		if ok, _ := x.limit.TryAcquire(time.Now()); !ok {
			if err := d.Wait(ctx, x.limit.Acquire); err != nil {
				return longshore.Release(err, 0)
			}
		}
		defer x.limit.Release()
		return next.Handle(ctx, d)
	})
}

// WrapBatch limits a batch handler: a batch takes one permit of each of its keys,
// one key after the other in the order of their names, so that two batches cannot
// wait for each other.
func (k *Keyed) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		keys := map[string]*longshore.Delivery{}
		for _, d := range ds {
			if key := k.key(d); key != "" {
				keys[key] = d
			}
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			x := k.enter(key)
			defer k.exit(key, x)
			if ok, _ := x.limit.TryAcquire(time.Now()); !ok {
				if err := keys[key].Wait(ctx, x.limit.Acquire); err != nil {
					return longshore.Release(err, 0)
				}
			}
			defer x.limit.Release()
		}
		return next.HandleBatch(ctx, ds)
	})
}

func (k *Keyed) enter(key string) *keyed {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.keys[key]
	if x == nil {
		x = &keyed{limit: NewUnlimited()}
		x.limit.set(k.limits(key))
		k.keys[key] = x
	}
	x.users++
	return x
}

// exit forgets the key if it is unused and nothing has to be remembered.
func (k *Keyed) exit(key string, x *keyed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if x.users--; x.users > 0 {
		return
	}
	m := k.limits(key)
	if m.Rate < 0 {
		delete(k.keys, key)
		return
	}
	x.last = time.Now()
	if x.last.Sub(k.swept) >= sweepEvery {
		k.sweep(x.last)
	}
}

// sweep forgets keys whose bucket is full again. The caller holds mu.
func (k *Keyed) sweep(now time.Time) {
	k.swept = now
	for key, x := range k.keys {
		m := k.limits(key)
		if x.users == 0 && (m.Rate <= 0 || now.Sub(x.last).Seconds() > float64(m.burst())/m.Rate) {
			delete(k.keys, key)
		}
	}
}

// limits of a key. The caller holds mu.
func (k *Keyed) limits(key string) Limits {
	if m, ok := k.own[key]; ok {
		return m
	}
	return k.all
}

// Keys returns how many keys are remembered: those in use, and those with a rate
// that were used just now.
func (k *Keyed) Keys() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.keys)
}

// SetPermits changes how many deliveries of each key may be in the handler at once,
// of keys without limits of their own.
func (k *Keyed) SetPermits(n int) {
	k.change(func() { k.all.Permits = max(n, 0) })
}

// SetRate changes how many deliveries of each key start per second, of keys
// without limits of their own.
func (k *Keyed) SetRate(perSecond float64) {
	k.change(func() { k.all.Rate = sane(perSecond) })
}

// SetKey gives one key limits of its own; negative ones are unlimited.
func (k *Keyed) SetKey(key string, m Limits) {
	k.change(func() { k.own[key] = m })
}

// UnsetKey takes a key's own limits away.
func (k *Keyed) UnsetKey(key string) {
	k.change(func() { delete(k.own, key) })
}

func (k *Keyed) change(edit func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	edit()
	for key, x := range k.keys {
		x.limit.set(k.limits(key))
	}
}

// set replaces the configured limits; negative ones are none.
func (l *Limiter) set(m Limits) {
	m.Burst = max(m.Burst, 0)
	if m.Permits < 0 {
		m.Permits = unlimited
	}
	if m.Rate < 0 {
		m.Rate = unlimited
	} else {
		m.Rate = sane(m.Rate)
	}
	l.change(func() { l.base = m })
}
