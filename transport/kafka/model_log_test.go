package kafka

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore"
)

// produce appends records, with the gaps of compaction and markers of transactions.
func (m *modelled) produce() {
	gap := rapid.SampledFrom([]int64{0, 0, 1, 5, 20000}).Draw(m.T, "gap")
	for range rapid.IntRange(1, 40).Draw(m.T, "records") {
		m.log = append(m.log, modelRecord{m.end, m.epoch, rapid.IntRange(0, 9).Draw(m.T, "control") == 0})
		m.end += 1 + gap
	}
	if rapid.Bool().Draw(m.T, "new leader") {
		m.epoch++
	}
}

func (m *modelled) fetch() {
	n := rapid.IntRange(1, 100).Draw(m.T, "fetched")
	fp := kgo.FetchPartition{HighWatermark: m.end, LastStableOffset: m.end}
	for _, r := range m.log {
		if r.offset < m.cursor || len(fp.Records) == n {
			continue
		}
		rec := &kgo.Record{Topic: "t", Offset: r.offset, LeaderEpoch: r.epoch}
		if r.control {
			rec.Attrs = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Control: true})
		}
		fp.Records = append(fp.Records, rec)
	}
	if len(fp.Records) > 0 {
		m.cursor = fp.Records[len(fp.Records)-1].Offset + 1
	}
	m.c.poller.accept(kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "t", Partitions: []kgo.FetchPartition{fp}}}}})
	if p := m.c.assignments.get(modelKey.tp()); p != m.p {
		m.rewound(p)
	}
}

// receive takes what is there; if nothing comes there must be nothing.
func (m *modelled) receive() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	roomy, before := m.roomy(), m.p.t.Len()
	ds, err := m.c.Receive(ctx, rapid.IntRange(1, 60).Draw(m.T, "asked for"))
	m.due()
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) {
			m.Fatalf("receive: %v", err)
		}
		if len(m.again) > 0 {
			m.Fatalf("nothing was received, and %v are due", m.again)
		}
		if m.p.t.Len() < m.window || m.roomy() {
			m.nothingUndone(m.next, m.cursor)
		}
		return
	}
	for _, d := range ds {
		m.received(d)
	}
	if size := m.p.t.Len(); size > m.window && size > before && !roomy && !m.roomy() {
		m.Fatalf("%d in work, the window is %d", size, m.window)
	}
}

// nothingUndone: of the records [from, to) each is done, or a marker.
func (m *modelled) nothingUndone(from, to int64) {
	for _, r := range m.log {
		if r.offset >= from && r.offset < to && !r.control && !m.done[r.offset] {
			m.Fatalf("%d is not done and did not come", r.offset)
		}
	}
}

// roomy: the window does not count while the oldest waits for its next attempt.
func (m *modelled) roomy() bool {
	if m.c.src.cfg.Window > 0 {
		return false
	}
	for _, r := range m.log {
		if r.offset >= m.start && r.offset < m.p.t.Read() && !r.control && !m.done[r.offset] {
			return m.out[r.offset] == nil || m.local[r.offset]
		}
	}
	return false
}

func (m *modelled) received(d *longshore.Delivery) {
	offset := int64(d.Origin.Position) //nolint:gosec // offsets are not negative
	want := max(1, m.tries[offset])
	switch {
	case m.again[offset]:
		delete(m.again, offset)
		if d.Attempt != want || !d.Origin.Redelivered {
			m.Fatalf("%d comes again at attempt %d, want %d", offset, d.Attempt, want)
		}
	case offset < m.next:
		m.Fatalf("%d comes a second time", offset)
	case m.exact && m.done[offset]:
		m.Fatalf("%d comes and was saved as done", offset)
	case d.Attempt > want, m.exact && d.Attempt != want:
		m.Fatalf("%d comes at attempt %d, want %d", offset, d.Attempt, want)
	default:
		m.nothingUndone(m.next, offset)
		m.next = offset + 1
		delete(m.done, offset) // there was no room to save it
		m.tries[offset] = d.Attempt
	}
	m.out[offset] = d
}

// cut loses the end of the log, at a leader that had not got it: other records get
// those offsets. The client notices, and goes on at the cut.
func (m *modelled) cut() {
	if m.flight != nil {
		m.Skip("a commit is on its way")
	}
	var cuts []int64
	for _, r := range m.log {
		if !m.has || r.offset >= m.broker.offset {
			cuts = append(cuts, r.offset)
		}
	}
	if len(cuts) == 0 {
		m.Skip("all is committed")
	}
	at := rapid.SampledFrom(cuts).Draw(m.T, "cut at")
	gone := func(offset int64) bool { return offset >= at }
	m.log = slices.DeleteFunc(m.log, func(r modelRecord) bool { return gone(r.offset) })
	m.end, m.epoch = at, m.epoch+1
	m.produce()
	for _, offsets := range []map[int64]bool{m.done, m.durable} {
		maps.DeleteFunc(offsets, func(o int64, _ bool) bool { return gone(o) })
	}
	for _, attempts := range []map[int64]int{m.tries, m.saved} {
		maps.DeleteFunc(attempts, func(o int64, _ int) bool { return gone(o) })
	}
	if m.cursor > at {
		m.cursor = at
		m.forfeited(m.fetch)
	}
}

// rewound goes on with the assignment that took the place of the one whose records
// are gone. What was not done below the cut comes again.
func (m *modelled) rewound(p *partition) {
	for _, d := range m.out {
		if err := d.Ack(context.Background()); !errors.Is(err, longshore.ErrLost) {
			m.Fatalf("an ack after the cut: %v", err)
		}
	}
	m.begin(p)
	m.nothingUndone(0, m.start)
}
