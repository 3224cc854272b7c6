package container_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// unpacking is a middleware that puts a large body in the place of a small one.
type unpacking struct {
	size       int
	held, most atomic.Int64 // bodies that handlers have now, and had at once
}

func (u *unpacking) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		if err := d.Reserve(ctx, int64(u.size)); err != nil {
			return longshore.Release(err, 0)
		}
		n := u.held.Add(1)
		defer u.held.Add(-1)
		for {
			most := u.most.Load()
			if n <= most || u.most.CompareAndSwap(most, n) {
				break
			}
		}
		m := d.Message
		m.Body = make([]byte, u.size)
		d.Replace(m)
		return next.Handle(ctx, d)
	})
}

func (u *unpacking) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		verdicts := longshore.BatchError{}
		var good []*longshore.Delivery
		for i, d := range ds {
			if err := d.Reserve(ctx, int64(u.size)); err != nil {
				verdicts[i] = longshore.Release(err, time.Millisecond)
				continue
			}
			m := d.Message
			m.Body = make([]byte, u.size)
			d.Replace(m)
			good = append(good, d)
		}
		n := u.held.Add(int64(len(good)))
		defer u.held.Add(-int64(len(good)))
		u.most.Store(max(u.most.Load(), n))
		if err := next.HandleBatch(ctx, good); err != nil {
			return err
		}
		return verdicts
	})
}

// F-N23: many workers, each with one small message that unpacks to a lot: no more unpacked
// bytes are held than MaxBytes allows, the others wait, all of them are handled, and the
// sum goes back to nothing.
func TestUnpackedBodiesCountInMaxBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(40)...)
		u := &unpacking{size: size}
		var handled atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			if len(d.Body) != size {
				t.Errorf("a body of %d bytes", len(d.Body))
			}
			handled.Add(1)
			wait(time.Second)
			return nil
		}), container.Config{Workers: container.Workers{Min: 16, Max: 16}, MaxBytes: 3*size + size/2, Middleware: []longshore.Middleware{u}})
		wait(500 * time.Millisecond)
		st := c.Stats()
		if st.Bytes < 3*size || st.Bytes > 4*size {
			t.Errorf("%d bytes are held, want those of 3 bodies", st.Bytes)
		}
		if n := handled.Load(); n != 3 {
			t.Errorf("%d handlers run at once, want 3", n)
		}
		wait(time.Minute)
		if most, n := u.most.Load(), handled.Load(); most != 3 || n != 40 {
			t.Errorf("%d bodies at once, want 3; %d of 40 handled", most, n)
		}
		if st := c.Stats(); st.Bytes != 0 {
			t.Errorf("%d bytes are left", st.Bytes)
		}
		stop(t, c)
	})
}

// F-N23: one body that is larger than MaxBytes alone is let through, and so are batches,
// whose deliveries come back where others of the same batch leave them no room.
func TestUnpackedBodiesLargerThanMaxBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(6)...)
		u := &unpacking{size: 1 << 20}
		var handled atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error {
			handled.Add(1)
			wait(time.Second)
			return nil
		}), container.Config{Workers: container.Workers{Min: 4, Max: 4}, MaxBytes: 1000, Middleware: []longshore.Middleware{u}})
		wait(time.Minute)
		if most, n := u.most.Load(), handled.Load(); most != 1 || n != 6 {
			t.Errorf("%d at once, want 1; %d of 6 handled", most, n)
		}
		stop(t, c)
	})
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(40)...)
		u := &unpacking{size: 1 << 20}
		var handled atomic.Int32
		c, err := container.NewBatch(b.Queue("q", memory.QueueConfig{}), func(_ context.Context, ds []*longshore.Delivery) error {
			handled.Add(int32(len(ds))) //nolint:gosec // few
			wait(100 * time.Millisecond)
			return nil
		}, container.Config{Workers: container.Workers{Min: 4, Max: 4}, MaxBytes: 3 << 20, Middleware: []longshore.Middleware{u}, Batch: container.Batch{Size: 8}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait(time.Minute)
		if most, n := u.most.Load(), handled.Load(); most > 3 || n != 40 {
			t.Errorf("%d at once, want 3 at most; %d of 40 handled", most, n)
		}
		stop(t, c)
	})
}

// F-N23: who waits for room gives up when its context ends, and a failed attempt gives its
// room back.
func TestRoomForUnpackedBodiesComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(3)...)
		u := &unpacking{size: 1 << 20}
		var failed, handled atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			wait(time.Second)
			if d.Attempt == 1 {
				failed.Add(1)
				return longshore.Retry(errors.New("not yet"), time.Hour)
			}
			handled.Add(1)
			return nil
		}), container.Config{Workers: container.Workers{Min: 3, Max: 3}, MaxBytes: 1 << 20, Middleware: []longshore.Middleware{u}})
		wait(10 * time.Second)
		if st := c.Stats(); failed.Load() != 3 || st.Bytes > 1000 {
			t.Errorf("%d failed, %d bytes are held while their retries wait", failed.Load(), st.Bytes)
		}
		wait(2 * time.Hour)
		if handled.Load() != 3 || u.most.Load() != 1 {
			t.Errorf("%d of 3 handled, %d at once", handled.Load(), u.most.Load())
		}
		publish(t, b, "q", numbered(3)...)
		wait(1500 * time.Millisecond)
		began := time.Now()
		rep := stop(t, c)
		if took := time.Since(began); rep.Bad() || took > 3*time.Second {
			t.Errorf("a stop while some wait for room took %v: %v", took, rep)
		}
	})
}
