package transporttest

import (
	"context"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func optionalChecks() []check {
	return []check{
		{name: "window", needs: needs("Windowed"), run: keepsWindow},
		{name: "resize", run: resizes},
		{name: "pause", run: pauses},
		{name: "stays", run: keepsItsPlace},
		{name: "opens-paused", run: opensPaused},
		{name: "backlog", run: tellsBacklog},
		{name: "browse", run: browses},
		{name: "describe", run: describes},
		{name: "probe", run: probes},
		{name: "operations", needs: needs("Operations"), run: operations},
	}
}

// F-E06: never unlimited.
func keepsWindow(e *env) {
	src, limit := e.h.Windowed(e)
	e.publish(src, bodies(3*limit)...)
	s := e.open(src, transport.OpenOptions{})
	ds := s.take(limit)
	more, end := s.drain()
	if end != nil {
		e.Fatalf("Receive: %v", end)
	}
	if n := len(ds) + len(more); n > limit {
		e.Errorf("%d deliveries unsettled at a window of %d", n, limit)
	}
	s.ack(ds[0])
	s.flush()
	s.take(1)
}

func resizes(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{Window: 2, MaxWindow: 12})
	r, ok := s.Consumer.(transport.Resizer)
	switch {
	case !s.caps.LiveResize:
		e.without("LiveResize is false")
		return
	case !ok:
		e.Fatal("Capabilities.LiveResize, but the consumer does not implement transport.Resizer")
	}
	e.publish(src, bodies(12)...)
	ds := s.take(2)
	e.must("Resize to 8", func(ctx context.Context) error { return r.Resize(ctx, 8) })
	ds = append(ds, s.take(6)...)
	e.must("Resize to 1", func(ctx context.Context) error { return r.Resize(ctx, 1) })
	s.ack(ds...)
	for range 4 {
		s.ack(s.take(1)...)
	}
	s.finish()
	e.holds(src, "after the window grew and shrank")
}

// Receive stays valid while the supervisor pauses and resumes.
func pauses(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	p, ok := s.Consumer.(transport.Pauser)
	if !ok {
		e.skip("the consumer does not implement transport.Pauser")
		return
	}
	e.must("Pause", p.Pause)
	e.must("second Pause", p.Pause)
	e.publish(src, "a")
	if _, err := s.within(e.h.Quiet, 1); err == nil {
		e.Errorf("received while paused")
	} else {
		e.wants("Receive while paused", err, context.DeadlineExceeded)
	}
	got := make(chan []*longshore.Delivery, 1)
	failed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), e.h.Patience)
		defer cancel()
		ds, err := s.Receive(ctx, 1)
		failed <- err
		got <- ds
	}()
	e.must("Resume", p.Resume)
	if err := <-failed; err != nil {
		e.Fatalf("Receive that waited while paused: %v", err)
	}
	s.ack(<-got...)
	s.finish()
	e.holds(src, "after Pause, Resume and an ack")
}

// A consumer that is better not cancelled keeps its place over a pause, and what it has.
func keepsItsPlace(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	p, ok := s.Consumer.(transport.Pauser)
	switch {
	case !s.caps.KeepsPlace:
		e.without("KeepsPlace is false")
		return
	case !ok:
		e.skip("the consumer does not implement transport.Pauser")
		return
	}
	e.publish(src, "a")
	first := s.take(1)
	e.must("Pause", p.Pause)
	var other *sub
	if s.caps.SingleActive {
		other = e.open(src, transport.OpenOptions{})
	}
	e.publish(src, "b")
	if other != nil {
		if ds, _ := other.within(e.h.Quiet, 1); len(ds) > 0 {
			e.Errorf("another consumer was given %v while the single active one was paused", bodiesOf(ds))
		}
		other.shut()
	}
	s.ack(first...)
	s.flush()
	e.must("Resume", p.Resume)
	rest := s.take(1)
	if got := bodiesOf(rest); got[0] != "b" {
		e.Errorf("received %v after the pause, want b", got)
	}
	s.ack(rest...)
	s.finish()
	e.holds(src, "after a pause with an unsettled delivery")
}

// F-N02: a consumer that is opened while work may not start takes nothing. Another one
// gets everything, though it came later; resumed, it receives what comes then.
func opensPaused(e *env) {
	src := e.h.Source(e)
	e.publish(src, "a")
	s := e.open(src, transport.OpenOptions{Paused: true, Window: 8, MaxWindow: 8})
	p, ok := s.Consumer.(transport.Pauser)
	switch {
	case !s.caps.OpensPaused:
		e.without("OpensPaused is false")
		return
	case !ok:
		e.Fatal("Capabilities.OpensPaused, but the consumer does not implement transport.Pauser")
	}
	if _, err := s.within(e.h.Quiet, 1); err == nil {
		e.Errorf("received before it was resumed")
	} else {
		e.wants("Receive of a consumer opened paused", err, context.DeadlineExceeded)
	}
	if b, ok := s.Consumer.(transport.Bufferer); ok && b.Buffered() > 0 {
		e.Errorf("%d messages were taken before it was resumed", b.Buffered())
	}
	if s.caps.Ordering != longshore.OrderPartition { // a member has its partitions, paused or not
		other := e.open(src, transport.OpenOptions{})
		other.ack(other.take(1)...)
		other.finish()
	} else {
		e.must("Resume", p.Resume)
		s.ack(s.take(1)...)
	}
	e.must("Resume", p.Resume)
	e.publish(src, "b")
	ds := s.take(1)
	if got := bodiesOf(ds); got[0] != "b" {
		e.Errorf("received %v after Resume, want b", got)
	}
	if ds[0].Attempt != 1 || ds[0].Origin.Redelivered {
		e.Errorf("the first delivery after Resume has attempt %d, redelivered %v", ds[0].Attempt, ds[0].Origin.Redelivered)
	}
	s.ack(ds...)
	s.finish()
	e.holds(src, "after it was opened paused and resumed")
}

func tellsBacklog(e *env) {
	src := e.h.Source(e)
	e.publish(src, bodies(10)...)
	s := e.open(src, transport.OpenOptions{Window: 2, MaxWindow: 2})
	b, ok := s.Consumer.(transport.Backlogger)
	if !ok {
		e.skip("the consumer does not implement transport.Backlogger")
		return
	}
	read := func() int {
		var n int64
		var at time.Time
		e.must("Backlog", func(ctx context.Context) (err error) {
			n, at, err = b.Backlog(ctx)
			return err
		})
		if at.IsZero() || at.After(time.Now().Add(time.Second)) {
			e.Errorf("Backlog was read at %v", at)
		}
		return int(n)
	}
	held := func() int {
		if f, ok := s.Consumer.(transport.Bufferer); ok {
			return f.Buffered()
		}
		return 0
	}
	e.until("Backlog and Buffered together show 10 messages", func() bool { n := read(); return n <= 10 && n+held() >= 10 })
	for range 10 {
		s.ack(s.take(1)...)
	}
	s.flush()
	e.until("Backlog is 0 when all were acked", func() bool { return read() == 0 })
}

func browses(e *env) {
	src := e.h.Source(e)
	b, ok := src.(transport.Browser)
	if !ok {
		e.skip("the source does not implement transport.Browser")
		return
	}
	s := e.open(src, transport.OpenOptions{}) // the queue exists from here on
	s.shut()
	e.publish(src, bodies(5)...)
	for range 2 { // looking changes nothing, so it can be done again
		var got []string
		from := ""
		for page := 0; page == 0 || from != ""; page++ {
			if page > 5 {
				e.Fatal("Browse does not come to an end")
			}
			var ds []*longshore.Delivery
			e.must("Browse", func(ctx context.Context) (err error) {
				ds, from, err = b.Browse(ctx, from, 2)
				return err
			})
			if len(ds) > 2 {
				e.Errorf("Browse returned %d messages, 2 were asked for", len(ds))
			}
			got = append(got, bodiesOf(ds)...)
			for _, d := range ds {
				if err := e.do("Ack", d.Ack); err == nil {
					e.Errorf("a browsed message could be acked")
				}
			}
		}
		if !slices.Equal(sorted(got), bodies(5)) {
			e.Errorf("browsed %v, the queue holds %v", got, bodies(5))
		}
	}
	if s, ok := src.(transport.Scanner); ok {
		scans(e, s)
	}
	e.holds(src, "after it was browsed", bodies(5)...)
}

// scans checks that a scan ends where it is told to, and reads all otherwise.
func scans(e *env, s transport.Scanner) {
	for _, c := range []struct {
		n, stop, want int
		whole         bool
	}{{2, 9, 2, false}, {9, 3, 3, false}, {9, 9, 5, true}} {
		var got []string
		var whole bool
		e.must("Scan", func(ctx context.Context) (err error) {
			whole, err = s.Scan(ctx, c.n, func(d *longshore.Delivery) bool {
				got = append(got, string(d.Body))
				if err := d.Ack(ctx); err == nil {
					e.Errorf("a scanned message could be acked")
				}
				return len(got) < c.stop
			})
			return err
		})
		if len(got) != c.want || whole != c.whole {
			e.Errorf("a scan of %d that stops after %d showed %v, whole %v", c.n, c.stop, got, whole)
		}
	}
}

func describes(e *env) {
	src := e.h.Source(e)
	d, ok := src.(transport.Describer)
	if !ok {
		e.skip("the source does not implement transport.Describer")
		return
	}
	if got := d.Describe(); got.Transport == "" || got.Kind == "" || got.Name == "" {
		e.Errorf("Describe leaves out transport, kind or name: %+v", got)
	}
	if c, ok := src.(transport.Checker); ok {
		if err := c.Check(); err != nil {
			e.Errorf("Check: %v", err)
		}
	}
}

func probes(e *env) {
	p, ok := e.h.Source(e).(transport.Prober)
	if !ok {
		e.skip("the source does not implement transport.Prober")
		return
	}
	e.must("Probe", p.Probe)
	if e.h.BadAuth == nil {
		return
	}
	if p, ok := e.h.BadAuth(e).(transport.Prober); ok {
		e.wants("Probe with a login that is refused", e.do("Probe", p.Probe), longshore.CodeAuth)
	}
}
