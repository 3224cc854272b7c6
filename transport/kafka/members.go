package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// maxMembers bounds GroupConfig.Members: each has connections and heartbeats of its own.
const maxMembers = 64

// members is several members of one group behind one consumer. Each has its partitions, its
// connections and its commits; what they have received is handed out in turn from one line.
// The first member that fails ends all of them.
type members struct {
	all   []*consumer    // the members, each with a client of its own
	turns *turns         // hands out what they receive, one partition after the other
	life  *lifetime      // of all together
	wg    sync.WaitGroup // goroutines that watch the members
}

// openMembers opens every member, or none.
func (s *Group) openMembers(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	m := &members{life: newLifetime(), turns: newTurns(o.Paused)}
	first := &firstOnly{}
	for i := range s.cfg.Members {
		c, err := s.member(i).openMember(ctx, first.of(i, o), m.turns)
		if err != nil {
			for _, opened := range m.all {
				_ = opened.Close(ctx)
			}
			m.life.finish()
			return nil, err
		}
		m.all = append(m.all, c)
	}
	for _, c := range m.all {
		m.wg.Go(func() { m.watch(c) })
	}
	return m, nil
}

// member is the source of one member: only the names of static members differ.
func (s *Group) member(i int) *Group {
	one := *s
	if one.cfg.InstanceID != "" {
		one.cfg.InstanceID = fmt.Sprintf("%s-%d", s.cfg.InstanceID, i+1)
	}
	if t := s.cfg.Transactional; t != nil && t.ID != "" {
		own := *t
		own.ID = fmt.Sprintf("%s-%d", t.ID, i+1)
		one.cfg.Transactional = &own
	}
	return &one
}

// firstOnly keeps events that concern all members from being reported by each.
type firstOnly struct{ down sync.Once }

// of are the options of one member.
func (f *firstOnly) of(i int, o transport.OpenOptions) transport.OpenOptions {
	if o.Observer == nil {
		return o
	}
	one := memberObserver{Observer: o.Observer, of: f, first: i == 0}
	if l, ok := o.Observer.(transport.LeaveObserver); ok {
		o.Observer = struct {
			memberObserver
			transport.LeaveObserver
		}{one, l}
		return o
	}
	o.Observer = one
	return o
}

// memberObserver is the observer of one member.
type memberObserver struct {
	transport.Observer
	of    *firstOnly // lets only the first Down through
	first bool       // reports what each finds alike
}

// Down reports the first member that is down.
func (w memberObserver) Down(err error) { w.of.down.Do(func() { w.Observer.Down(err) }) }

// Event passes on what concerns this member, and for all of them what was declared.
func (w memberObserver) Event(e transport.Event) {
	if w.first || e.Kind != transport.EventDeclared {
		w.Observer.Event(e)
	}
}

// watch ends all members when one has failed.
func (m *members) watch(c *consumer) {
	select {
	case <-c.life.failed:
		_, err := c.life.failure()
		m.life.fail(err)
	case <-c.life.over.Done():
	case <-m.life.over.Done():
	}
}

// Receive hands out records of all members in turn.
func (m *members) Receive(ctx context.Context, n int) ([]*longshore.Delivery, error) {
	for _, c := range m.all {
		if err := c.committer.awaitCommit(ctx); err != nil {
			return nil, err
		}
	}
	return m.turns.receive(ctx, n, m.life)
}

// Pause stops fetching and handing out. The members stay in the group.
func (m *members) Pause(context.Context) error { m.turns.setPaused(true); return nil }

// Resume ends a pause.
func (m *members) Resume(ctx context.Context) error {
	return m.each(func(c *consumer) error { return c.Resume(ctx) })
}

// Cancel stops fetching; the members keep their partitions.
func (m *members) Cancel(ctx context.Context) error {
	m.life.cancel()
	return m.each(func(c *consumer) error { return c.Cancel(ctx) })
}

// Release has nothing to give back, as for one member.
func (m *members) Release(context.Context) error { return nil }

// Flush commits until everything that was acknowledged is committed.
func (m *members) Flush(ctx context.Context) error {
	return m.each(func(c *consumer) error { return c.Flush(ctx) })
}

// Close ends all members at once: each commits what is done and leaves the group.
func (m *members) Close(ctx context.Context) error {
	_, _ = m.life.close()
	errs := make([]error, len(m.all))
	var wg sync.WaitGroup
	for i, c := range m.all {
		wg.Go(func() { errs[i] = c.Close(ctx) })
	}
	wg.Wait()
	m.life.finish()
	m.wg.Wait()
	return errors.Join(errs...)
}

// Resize lets every member follow what the container wants to hold.
func (m *members) Resize(ctx context.Context, window int) error {
	return m.each(func(c *consumer) error { return c.Resize(ctx, window) })
}

// Backlog adds up what waits in all partitions; the oldest reading dates it.
func (m *members) Backlog(ctx context.Context) (sum int64, at time.Time, err error) {
	for _, c := range m.all {
		n, read, err := c.Backlog(ctx)
		if err != nil {
			return 0, time.Time{}, err
		}
		if sum += n; at.IsZero() || read.Before(at) {
			at = read
		}
	}
	return sum, at, nil
}

// Partitions counts those of all members.
func (m *members) Partitions() (n int) {
	for _, c := range m.all {
		n += c.Partitions()
	}
	return n
}

// BlockedPartitions names those of all members, the longest blocked first.
func (m *members) BlockedPartitions() (blocked []transport.BlockedPartition) {
	for _, c := range m.all {
		blocked = append(blocked, c.BlockedPartitions()...)
	}
	slices.SortFunc(blocked, func(a, b transport.BlockedPartition) int { return a.Since.Compare(b.Since) })
	return blocked
}

// Seek moves the partitions of each member that has some of those meant.
func (m *members) Seek(ctx context.Context, to transport.Position, drain time.Duration, fenced func()) (moved []transport.Moved, err error) {
	var absent error
	for _, c := range m.all {
		one, err := c.Seek(ctx, to, drain, fenced)
		moved = append(moved, one...)
		switch {
		case err == nil:
		case errors.Is(err, longshore.CodeNotFound):
			absent = err
		default:
			return moved, err
		}
	}
	if len(moved) == 0 {
		return nil, absent
	}
	return moved, nil
}

// each calls every member, one after the other.
func (m *members) each(f func(*consumer) error) error {
	var errs []error
	for _, c := range m.all {
		errs = append(errs, f(c))
	}
	return errors.Join(errs...)
}

// checkMembers finds mistakes in the settings of this file.
func (g *GroupConfig) checkMembers(l *problem.List) {
	if g.Members < 0 || g.Members > maxMembers {
		l.Range("Members", g.Members, "from 1 to %d, or 0 for one", maxMembers)
	}
	if g.Commit > AfterEach {
		l.Add(problem.Bad("Commit", "use one of its constants", "has an unknown value").OfKind(problem.UnknownWord))
	}
}
