package kafka

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/modeltest"
	"github.com/longshore-go/longshore/transport"
)

// F-C04, F-C05: whatever happens to the assignments of a partition, a record comes until
// it is done, and none comes that a commit has saved as done. The model is a set of
// offsets for what is done, and another for what the broker has.
func TestModelOfAPartition(t *testing.T) {
	modeltest.Check(t, 25, func(t *rapid.T) { newModelled(t).run() })
}

// modelled is a log, its group at the broker, a member, and the model.
type modelled struct {
	*rapid.T
	log    []modelRecord
	end    int64 // of the log
	epoch  int32
	limit  int // of the metadata, at the broker
	broker commitRead
	has    bool // the group has a position

	c      *consumer
	p      *partition
	cursor int64 // where the client fetches next
	flight *modelCommit
	told   telling
	window int

	// The model. Offsets are enough: what is cut off the log is forgotten here.
	done, durable   map[int64]bool // by this member; by the broker's word
	tries, saved    map[int64]int  // attempts of those given back, likewise
	exact           bool           // the metadata has had room for all of it
	out             map[int64]*longshore.Delivery
	waits           map[int64]time.Time // given back and not yet due
	again           map[int64]bool      // due
	local           map[int64]bool      // retried by the container
	next            int64               // nothing from here on has been handed out
	start           int64               // where this assignment began
	uncommitted     int                 // acks that no answered commit has carried
	watermark, sent int64               // the highest seen
	late            []*longshore.Delivery
}

type modelRecord struct {
	offset  int64
	epoch   int32
	control bool
}

// telling counts what the observer hears.
type telling struct{ lost, failed atomic.Int64 }

func (o *telling) Lost(ds []*longshore.Delivery, _ error) { o.lost.Add(int64(len(ds))) }
func (o *telling) SettleFailed(*longshore.Delivery, longshore.Settlement, error) {
	o.failed.Add(1)
}
func (o *telling) Down(error)            {}
func (o *telling) Event(transport.Event) {}

func newModelled(t *rapid.T) *modelled {
	m := &modelled{T: t, durable: map[int64]bool{}, saved: map[int64]int{}, exact: true, sent: -1,
		limit: rapid.SampledFrom([]int{4096, 4096, 150}).Draw(t, "metadata limit"),
		end:   rapid.SampledFrom([]int64{0, 5, 1 << 40}).Draw(t, "log start")}
	cfg := GroupConfig{Window: rapid.SampledFrom([]int{0, 1, 7, 90}).Draw(t, "configured window")}
	m.c = newConsumer(New([]string{"none"}, Config{}).Group("g", []string{"t"}, cfg),
		transport.OpenOptions{Observer: &m.told}, newTurns(false))
	if m.window = cfg.Window; m.window == 0 {
		m.window = rapid.SampledFrom([]int{1, 5, 200}).Draw(t, "window")
		m.c.with.window.Store(int64(m.window))
	}
	refuse := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("there is no broker") }
	cl, _ := kgo.NewClient(kgo.Dialer(refuse)) // nothing is asked of it
	m.c.attach(cl)
	m.assign()
	return m
}

func (m *modelled) run() {
	defer func() { // also of what has failed
		m.p.release(longshore.ErrLost)
		m.c.life.halt()
		m.c.life.finish()
		m.c.cl.Close()
	}()
	act := func(f func()) func(*rapid.T) { return func(*rapid.T) { f() } }
	m.Repeat(map[string]func(*rapid.T){
		"":             act(m.check),
		"produce":      act(m.produce),
		"fetch":        act(m.fetch),
		"receive":      act(m.receive),
		"receive more": act(m.receive),
		"ack":          act(m.ack),
		"ack more":     act(m.ack),
		"ack many":     act(m.ackMany),
		"give back":    act(m.giveBack),
		"retry":        act(m.retry),
		"settle late":  act(m.settleLate),
		"wait":         act(m.wait),
		"commit":       act(m.commit),
		"answer":       act(m.answer),
		"revoke":       act(m.revoke),
		"lose":         act(m.lose),
		"cut the log":  act(m.cut),
	})
	m.finish()
}

// check is what holds at any time.
func (m *modelled) check() {
	base, size := m.start, 0
	for _, r := range m.log {
		switch {
		case r.offset < m.start || r.offset >= m.p.t.Read():
		case size == 0 && (r.control || m.done[r.offset]):
			base = r.offset + 1
		default:
			size++
		}
	}
	if m.p.t.Base() != base || m.p.t.Len() != size {
		m.Fatalf("the watermark is %d with %d above it, want %d with %d", m.p.t.Base(), m.p.t.Len(), base, size)
	}
	if base < m.watermark {
		m.Fatalf("the watermark goes back from %d to %d", m.watermark, base)
	}
	m.watermark = base
	if m.p.out != len(m.out) {
		m.Fatalf("%d are out, want %d", m.p.out, len(m.out))
	}
}

// finish works off all there is: then all of it is done, and committed.
func (m *modelled) finish() {
	for range 2*len(m.log) + 10 {
		if len(m.log) > 0 && m.p.t.Base() > m.log[len(m.log)-1].offset {
			break
		}
		m.fetch()
		m.wait()
		m.receive()
		for _, offset := range slices.Sorted(maps.Keys(m.out)) {
			m.acked(offset, m.out[offset])
		}
		m.check()
	}
	m.nothingUndone(0, m.end)
	if n := len(m.log); n > 0 && m.p.t.Base() != m.log[n-1].offset+1 {
		m.Fatalf("all is done, and the watermark is %d of %d", m.p.t.Base(), m.end)
	}
}
