package container_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/modeltest"
)

// F-B03: whatever fails, is lost, held back, dead-lettered in vain or stopped, one by one
// or in batches: of a key never two at once and none before an earlier one, no attempt
// beyond the last, every message is done in the end, every place given back, and the
// reports of the drains say what the broker saw.
func TestModelOfTheLanes(t *testing.T) {
	modeltest.Check(t, 25, func(t *rapid.T) { newLanes(t).run() })
}

type laneModel struct {
	*rapid.T
	b       *laneBroker
	c       *container.ListenerContainer
	policy  container.Policy
	gate    *gate
	breaker *batchBreaker
	held    bool
	paused  bool
	zero    time.Time

	mu    sync.Mutex
	place string         // "works", "fails", "dawdles"
	moves int            // dead letters that it takes now
	keys  map[string]int // handlers that run
	wrong []string
	trace []string
}

// note adds to the trace. The lock is held.
func (m *laneModel) note(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf("%12v ", time.Since(m.zero))+fmt.Sprintf(format, args...))
}

func (m *laneModel) fail(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(m.trace, "\n"))
}

func newLanes(t *rapid.T) *laneModel {
	yes := func(label string) bool { return rapid.Bool().Draw(t, label) }
	m := &laneModel{T: t, zero: time.Now(), place: "works", keys: map[string]int{}, breaker: &batchBreaker{&breaker{}},
		b: newLaneBroker(longshore.Capabilities{Attempts: true, Delay: yes("delay"), CountsReturns: yes("counts returns"), KeepsPlace: yes("stays")})}
	m.b.note = func(format string, args ...any) {
		m.mu.Lock()
		m.note(format, args...)
		m.mu.Unlock()
	}
	m.policy = rapid.SampledFrom([]container.Policy{container.Default, container.Default, container.DeadLetterKeep, container.DeadLetterDiscard}).Draw(t, "policy")
	cfg := quiet(container.Config{
		Order: container.ByKey, Workers: container.Workers{Max: rapid.IntRange(1, 4).Draw(t, "workers")},
		Redelivery: container.Redelivery{MaxAttempts: 3, Parked: rapid.SampledFrom([]int{2, 1000}).Draw(t, "parked"),
			Backoff: container.Backoff{Initial: 20 * time.Millisecond, Max: time.Second, Jitter: -1}},
		DeadLetter:   container.DeadLetter{Policy: m.policy},
		DrainTimeout: 400 * time.Millisecond, CancelGrace: 200 * time.Millisecond,
		Reopen:     container.Backoff{Initial: 10 * time.Millisecond, Max: 100 * time.Millisecond, Jitter: -1},
		Middleware: []longshore.Middleware{m.breaker},
		OnEvent: func(e container.Event) {
			m.mu.Lock()
			m.note("event %s %s", e.Kind, e.Text)
			m.mu.Unlock()
		},
	})
	cfg.Workers.Min = cfg.Workers.Max
	if m.policy == container.Default {
		cfg.DeadLetter = container.DeadLetter{To: "dead", Via: lanePlace{m}}
	}
	if yes("gate") {
		m.gate = newGate(-1, 0)
		cfg.Throttle = m.gate
	}
	var err error
	if yes("batches") {
		cfg.Batch = container.Batch{Size: rapid.IntRange(1, 4).Draw(t, "size"), Linger: rapid.SampledFrom([]time.Duration{-1, 20 * time.Millisecond}).Draw(t, "linger")}
		m.c, err = container.NewBatch(m.b, m.handle, cfg)
	} else {
		m.c, err = container.New(m.b, handle(func(d *longshore.Delivery) error {
			err := m.handle(d.Context(), []*longshore.Delivery{d})
			var each longshore.BatchError
			if errors.As(err, &each) {
				return each[0]
			}
			return err
		}), cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *laneModel) run() {
	defer func() { _ = m.c.Stop(context.Background()) }() // also of what has failed
	if err := m.c.Start(context.Background()); err != nil {
		m.Fatal(err)
	}
	act := func(f func()) func(*rapid.T) { return func(*rapid.T) { f() } }
	m.Repeat(map[string]func(*rapid.T){
		"":             act(m.check),
		"publish":      act(m.publish),
		"publish more": act(m.publish),
		"wait":         act(m.wait),
		"wait more":    act(m.wait),
		"take back":    act(m.takeBack),
		"take one":     act(m.takeBack),
		"drop":         act(m.b.drop),
		"place":        act(m.places),
		"hold":         act(func() { m.hold(!m.held) }),
		"pause":        act(func() { m.pause(!m.paused) }),
		"permits":      act(m.permits),
		"intervene":    act(m.intervene),
		"stop":         act(m.stop),
	})
	m.finish()
}

func (m *laneModel) publish() {
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) modelStep {
		return modelStep{
			kind: rapid.SampledFrom([]string{"ack", "error", "retry", "nack", "reject", "panic", "release"}).Draw(t, "verdict"),
			time: time.Duration(rapid.SampledFrom([]int{0, 7, 137, 737}).Draw(t, "ms"))*time.Millisecond + 13*time.Microsecond,
		}
	}), 0, 3)
	for range rapid.IntRange(1, 6).Draw(m.T, "messages") {
		msg := &laneMessage{key: rapid.SampledFrom([]string{"", "a", "a", "a", "b"}).Draw(m.T, "key"), script: steps.Draw(m.T, "script"), attempt: 1, where: "here"}
		m.b.mu.Lock()
		if msg.no = len(m.b.messages); msg.no < 256 {
			m.b.messages = append(m.b.messages, msg)
			m.b.poke()
		}
		m.b.mu.Unlock()
	}
}

func (m *laneModel) wait() {
	wait(rapid.SampledFrom([]time.Duration{time.Millisecond, 37 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second}).Draw(m.T, "time"))
}

// takeBack ends some leases, now or in a while, and tells of it at once or later.
func (m *laneModel) takeBack() {
	ms := func(label string, of ...int) time.Duration {
		return time.Duration(rapid.SampledFrom(of).Draw(m.T, label)) * time.Millisecond
	}
	mask, in, after := rapid.IntRange(1, 15).Draw(m.T, "which"), ms("in", 0, 0, 20, 137), ms("told after", 0, 0, 10)
	lose := func() {
		m.b.lose(after, func(o *laneOut) bool { return mask>>(o.no%4)&1 == 1 })
	}
	if in > 0 {
		time.AfterFunc(in, lose)
	} else {
		lose()
	}
}

func (m *laneModel) places() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.place = rapid.SampledFrom([]string{"works", "fails", "dawdles"}).Draw(m.T, "place")
}

// lanePlace takes dead letters.
type lanePlace struct{ m *laneModel }

func (p lanePlace) Publish(ctx context.Context, _ string, _ ...*longshore.Message) error {
	p.m.mu.Lock()
	place := p.m.place
	p.m.moves++
	p.m.mu.Unlock()
	defer func() { p.m.mu.Lock(); p.m.moves--; p.m.mu.Unlock() }()
	switch place {
	case "fails":
		return errors.New("no such place")
	case "dawdles":
		select {
		case <-time.After(700 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
func (lanePlace) Close(context.Context) error { return nil }

func (m *laneModel) hold(on bool) {
	m.held = on
	m.breaker.set(on)
}

func (m *laneModel) pause(on bool) {
	if m.paused = on; on {
		m.c.Pause()
	} else {
		m.c.Resume()
	}
}

func (m *laneModel) permits() {
	if m.gate == nil {
		m.Skip("no gate")
	}
	m.gate.set(rapid.IntRange(-1, 3).Draw(m.T, "permits"))
}

// intervene has an operator do something with one that is held. It may be in a state
// where that cannot be done.
func (m *laneModel) intervene() {
	held, _ := m.c.InFlight(100)
	if len(held) == 0 {
		m.Skip("nothing is held")
	}
	h := held[rapid.IntRange(0, len(held)-1).Draw(m.T, "held")]
	what := rapid.SampledFrom([]string{"retry", "dead-letter", "release"}).Draw(m.T, "by hand")
	do := map[string]func(container.Intervention) (container.Held, error){"retry": m.c.RetryNow, "dead-letter": m.c.DeadLetterNow, "release": m.c.ReleaseNow}[what]
	if what == "dead-letter" {
		no, _ := strconv.Atoi(h.Record)
		m.b.mu.Lock()
		m.b.messages[no].givenUp = true
		m.b.mu.Unlock()
	}
	_, err := do(container.Intervention{Record: h.Record, Reason: "a test", Interrupt: rapid.Bool().Draw(m.T, "interrupt")})
	m.mu.Lock()
	m.note("%s %s by hand: %v", what, h.Record, err)
	m.mu.Unlock()
}

// stop drains, compares the report with what the broker saw meanwhile, and starts again.
func (m *laneModel) stop() {
	synctest.Wait()
	m.b.mu.Lock()
	acked, given, told := m.b.acked, m.b.given, m.b.told
	m.b.mu.Unlock()
	m.mu.Lock()
	slow := m.place == "dawdles" || m.moves > 0 // a move that is cut off at the end leaves something behind
	m.mu.Unlock()
	began := time.Now()
	err := m.c.Stop(context.Background())
	if took := time.Since(began); took > m.c.StopBudget() || err != nil && !slow {
		m.fail("the stop took %v: %v", took, err)
	}
	m.b.mu.Lock()
	acked, given, told = m.b.acked-acked, m.b.given-given, m.b.told-told
	m.b.run++
	m.b.mu.Unlock()
	if rep := m.c.Report(); !slow && (rep.Completed != acked || rep.Released != given || rep.Lost > told) { // what is lost while it is closed is no news
		m.fail("acked %d, given back %d, lost %d; the report is %v", acked, given, told, rep)
	}
	if err = m.c.Start(context.Background()); err != nil {
		m.fail("start: %v", err)
	}
}

// check is what holds whenever nothing moves.
func (m *laneModel) check() {
	synctest.Wait()
	m.mu.Lock()
	wrong := m.wrong
	m.mu.Unlock()
	if len(wrong) > 0 {
		m.fail("%s", wrong[0])
	}
}

// finish lets it work until nothing is left.
func (m *laneModel) finish() {
	m.mu.Lock()
	m.place = "works"
	m.mu.Unlock()
	m.hold(false)
	m.pause(false)
	if m.gate != nil {
		m.gate.set(-1)
	}
	for range 600 {
		m.check()
		if m.left() == 0 {
			break
		}
		wait(time.Second)
	}
	wait(time.Second)
	m.check()
	st := m.c.Stats()
	if n := m.left(); n > 0 || st.InFlight+st.Parked+st.Lanes != 0 || st.Bytes != 0 {
		m.fail("%d are not done: %+v", n, st)
	}
	if m.gate != nil {
		if n, _ := m.gate.out(); n != 0 {
			m.fail("%d permits are taken", n)
		}
	}
}

func (m *laneModel) left() (n int) {
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	for _, msg := range m.b.messages {
		if msg.where != "done" {
			n++
		}
	}
	return n
}
