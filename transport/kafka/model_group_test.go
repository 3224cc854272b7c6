package kafka

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// modelCommit is one on its way.
type modelCommit struct {
	*pending
	done  map[int64]bool
	tries map[int64]int
	exact bool
	acks  int
}

var modelKey = partitionOf{topic: "t", num: 0}

func (m *modelled) commit() {
	if m.flight != nil {
		m.Skip("there is one")
	}
	one := m.p.uncommitted()
	if one == nil {
		if !m.has || m.broker.offset != m.p.t.Base() || m.uncommitted > 0 {
			m.Fatalf("nothing to commit at %d, the broker has %+v", m.p.t.Base(), m.broker)
		}
		return
	}
	if len(one.s.Saved) > m.p.ledger.budget || len(one.s.Saved) > offsets.DefaultBudget {
		m.Fatalf("%d characters of metadata, the budget is %d", len(one.s.Saved), m.p.ledger.budget)
	}
	if one.s.Offset != m.p.t.Base() {
		m.Fatalf("commits %d, want %d", one.s.Offset, m.p.t.Base())
	}
	m.flight = &modelCommit{pending: one, done: maps.Clone(m.done), tries: maps.Clone(m.tries), acks: m.uncommitted,
		exact: m.exact && m.p.ledger.budget == offsets.DefaultBudget && len(m.tries) <= offsets.MaxRetried}
	maps.DeleteFunc(m.flight.tries, func(_ int64, n int) bool { return n < 2 })
}

// answer is the broker's. One that is lost on the way is a failure here and a commit
// there.
func (m *modelled) answer() {
	if m.flight == nil {
		m.Skip("nothing is on its way")
	}
	f := m.flight
	m.flight = nil
	how := rapid.SampledFrom([]string{"done", "done", "refused", "lost"}).Draw(m.T, "answer")
	if len(f.s.Saved) > m.limit {
		f.p.committed(f.pending, kerr.OffsetMetadataTooLarge)
		return
	}
	if how == "refused" {
		f.p.committed(f.pending, kerr.CoordinatorLoadInProgress)
		return
	}
	if m.has && f.s.Offset < m.broker.offset {
		m.Fatalf("commits %d after %d", f.s.Offset, m.broker.offset)
	}
	m.broker, m.has = commitRead{offset: f.s.Offset, epoch: f.s.Epoch, saved: f.s.Saved}, true
	m.durable, m.saved, m.exact = f.done, f.tries, f.exact
	if how == "lost" {
		f.p.committed(f.pending, kerr.RequestTimedOut)
		return
	}
	m.uncommitted -= f.acks
	f.p.committed(f.pending, nil)
}

// revoke takes the partition away, as the group's protocol does: handlers may end,
// what is done is committed, which may fail, and what is not is reported.
func (m *modelled) revoke() {
	m.leave(true)
	m.assign()
}

// lose takes it away from one that is frozen: nothing can be committed.
func (m *modelled) lose() {
	m.leave(false)
	m.assign()
}

func (m *modelled) leave(commit bool) {
	if m.flight != nil && commit { // one commit at a time
		m.answer()
	}
	m.flight = nil
	parts := map[string][]int32{"t": {0}}
	if ps := m.c.assignments.retire(parts); len(ps) != 1 || ps[0] != m.p {
		m.Fatalf("retires %v", ps)
	}
	clear(m.waits)
	clear(m.again)
	for _, offset := range slices.Sorted(maps.Keys(m.out)) {
		switch rapid.IntRange(0, 3).Draw(m.T, "ends while it drains") {
		case 0:
			m.acked(offset, m.out[offset])
		case 1:
			m.gaveBack(offset, m.out[offset])
		}
	}
	m.told.lost.Store(0)
	if n := m.p.release(longshore.ErrLost); n != len(m.out) {
		m.Fatalf("%d are lost, want %d", n, len(m.out))
	}
	for offset, d := range m.out {
		if err := d.Ack(context.Background()); !errors.Is(err, longshore.ErrLost) {
			m.Fatalf("ack of %d, which is lost: %v", offset, err)
		}
	}
	if commit {
		m.commit()
		if m.flight != nil {
			m.answer()
		}
	}
	m.forfeited(m.p.reportUncommitted)
	m.c.assignments.remove([]*partition{m.p})
}

// forfeited: acks that no commit has carried are reported, each once.
func (m *modelled) forfeited(f func()) {
	m.told.failed.Store(0)
	f()
	synctest.Wait()
	if n := m.told.failed.Load(); n != int64(m.uncommitted) {
		m.Fatalf("%d acks are reported as not committed, want %d", n, m.uncommitted)
	}
	m.uncommitted = 0
}

// assign gives the partition to a member that knows what the broker knows.
func (m *modelled) assign() {
	start := m.end
	if len(m.log) > 0 {
		start = m.log[0].offset
	}
	p, err := m.c.start.begin(context.Background(), modelKey, m.broker, m.has, cluster.Extent{Start: start, End: m.end, Known: true})
	if err != nil {
		m.Fatalf("assign: %v", err)
	}
	m.c.assignments.install([]*partition{p})
	m.p = p
	m.done, m.tries = maps.Clone(m.durable), maps.Clone(m.saved)
	m.begin(p)
	if m.has && m.start != m.broker.offset {
		m.Fatalf("begins at %d, the group is at %d", m.start, m.broker.offset)
	}
}

func (m *modelled) begin(p *partition) {
	m.p = p
	m.out, m.waits, m.again, m.local = map[int64]*longshore.Delivery{}, map[int64]time.Time{}, map[int64]bool{}, map[int64]bool{}
	m.start, m.next, m.cursor, m.watermark = p.t.Base(), p.t.Base(), p.next, p.t.Base()
}
