package container_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/modeltest"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-A06, F-A07: whatever is asked of a container, in whatever order, its states are those
// of the design, each message is handled to its end once, a stop keeps its time, and
// nothing is left behind. Where calls take no time the model is exact; where they do, a
// message may come again after a cut connection or an abandoned handler.
func TestModelOfAContainer(t *testing.T) {
	modeltest.Check(t, 12, func(t *rapid.T) { newModelled(t).run() })
}

type modelled struct {
	*rapid.T
	b      *memory.Broker
	c      *container.ListenerContainer
	cfg    container.Config
	exact  bool
	keyed  bool
	counts bool          // what is given back
	slack  time.Duration // of a call that is slow

	started  bool
	paused   bool
	stopping chan struct{} // closed when the stop that goes on returns
	shaky    time.Time     // it may recover until then

	mu       sync.Mutex
	max      int // workers
	states   []string
	breaks   []time.Time // when a connection ended: a settlement of that moment may be lost
	messages []*modelMessage
	handlers map[*longshore.Delivery]modelCall
	wg       sync.WaitGroup
	wrong    []string
	trace    []string // what happened, and when
	zero     time.Time
}

// note adds to the trace. The lock is held.
func (m *modelled) note(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf("%12v ", time.Since(m.zero))+fmt.Sprintf(format, args...))
}

// modelMessage is one that was published, with what its handlers are to do in turn;
// then they succeed.
type modelMessage struct {
	no     int
	key    string
	script []modelStep
	final  string // "ack" or "dead"
	at     time.Time
	quiet  bool // published in a pause that lasts
	calls  int
}

type modelStep struct {
	kind string
	time time.Duration
}

type modelCall struct {
	m   *modelMessage
	run <-chan struct{} // by what says that it is done
}

func newModelled(t *rapid.T) *modelled {
	ms := func(label string, of ...int) time.Duration {
		return time.Duration(rapid.SampledFrom(of).Draw(t, label)) * time.Millisecond
	}
	m := &modelled{T: t, zero: time.Now(), b: memory.New(memory.Config{}), handlers: map[*longshore.Delivery]modelCall{},
		exact: rapid.Bool().Draw(t, "exact"), keyed: rapid.Bool().Draw(t, "by key")}
	queue := memory.QueueConfig{CountsReturns: rapid.Bool().Draw(t, "counts returns"), SingleActive: rapid.Bool().Draw(t, "single active"), Pull: rapid.Bool().Draw(t, "pull")}
	m.counts = queue.CountsReturns
	if !m.exact {
		m.slack = ms("latency", 1, 9)
		m.b.DelayAll(m.slack)
		queue.SettleLinger = ms("linger", 0, 5)
	}
	m.cfg = quiet(container.Config{
		Workers:      m.workers(),
		Order:        container.Unordered,
		Redelivery:   container.Redelivery{MaxAttempts: 3, Parked: 1000, Backoff: container.Backoff{Initial: 20 * time.Millisecond, Max: 2 * time.Second, Jitter: -1}},
		DeadLetter:   container.DeadLetter{To: "dead"},
		DrainTimeout: ms("drain", 1, 60, 400),
		CancelGrace:  ms("grace", 100, 400),
		Reopen:       container.Backoff{Initial: 10 * time.Millisecond, Max: 100 * time.Millisecond, Jitter: -1},
		StartPaused:  rapid.Bool().Draw(t, "start paused"),
		OnEvent:      m.event,
	})
	if m.keyed {
		m.cfg.Order = container.ByKey
	}
	if rapid.Bool().Draw(t, "no lookahead") {
		m.cfg.Lookahead = -1
	}
	m.paused = m.cfg.StartPaused
	var err error
	if m.c, err = container.New(m.b.Queue("q", queue), longshore.HandlerFunc(m.handle), m.cfg); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *modelled) workers() container.Workers {
	lo := rapid.IntRange(1, 4).Draw(m.T, "min")
	w := container.Workers{Min: lo, Max: lo + rapid.IntRange(0, 5).Draw(m.T, "more")}
	m.mu.Lock()
	m.max = w.Max
	m.mu.Unlock()
	return w
}

func (m *modelled) run() {
	defer m.wg.Wait()
	defer func() { _ = m.c.Stop(context.Background()) }() // also of what has failed
	act := func(f func()) func(*rapid.T) { return func(*rapid.T) { f() } }
	m.Repeat(map[string]func(*rapid.T){
		"":             act(m.check),
		"start":        act(m.start),
		"stop":         act(m.stop),
		"await stop":   act(m.await),
		"pause":        act(func() { m.pause(true) }),
		"resume":       act(func() { m.pause(false) }),
		"scale":        act(m.scale),
		"drop":         act(m.drop),
		"publish":      act(m.publish),
		"publish more": act(m.publish),
		"wait":         act(m.wait),
		"wait more":    act(m.wait),
	})
	m.finish()
}

// start is a new run, or nothing where one goes on. Where one ends, it waits for that.
func (m *modelled) start() {
	fresh := !m.started || m.stopping != nil || m.c.State() == container.StateStopped
	if err := m.c.Start(context.Background()); err != nil {
		m.Fatalf("start: %v", err)
	}
	if fresh {
		m.await()
		m.started = true
		m.shaky = time.Now().Add(2 * time.Second)
	}
}

// stop begins one, which goes on while other things are asked.
func (m *modelled) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	switch patience := rapid.SampledFrom([]time.Duration{-1, 0, 30 * time.Millisecond}).Draw(m.T, "patience"); {
	case patience == 0:
		cancel()
	case patience > 0:
		time.AfterFunc(patience, cancel)
	}
	before, ended := m.stopping, make(chan struct{})
	if before == nil {
		m.stopping = ended
	}
	began := time.Now()
	m.wg.Go(func() {
		defer cancel()
		err := m.c.Stop(ctx)
		if took := time.Since(began); took > m.c.StopBudget() {
			m.bad("the stop took %v, its budget is %v: %v", took, m.c.StopBudget(), m.c.Report())
		}
		if rep := m.c.Report(); rep != nil && before == nil && (err != nil) != rep.Bad() {
			m.bad("stop: %v, and the report is %v", err, rep)
		}
		close(ended)
	})
	synctest.Wait()
}

func (m *modelled) await() {
	if m.stopping == nil {
		return
	}
	<-m.stopping
	m.stopping = nil
	if n := m.b.Connections(); n != 0 && m.c.State() == container.StateStopped {
		m.Fatalf("%d connections are left behind", n)
	}
}

func (m *modelled) pause(on bool) {
	m.paused = on
	if on {
		m.c.Pause()
		return
	}
	m.mu.Lock()
	for _, msg := range m.messages {
		msg.quiet = false
	}
	m.mu.Unlock()
	m.c.Resume()
}

func (m *modelled) scale() {
	w := m.workers()
	if err := m.c.Scale(w.Min, w.Max); err != nil {
		m.Fatalf("scale: %v", err)
	}
}

// drop cuts the connection, and lets some of the next openings fail.
func (m *modelled) drop() {
	n := rapid.IntRange(0, 3).Draw(m.T, "refused")
	m.b.FailOpen("q", n, &longshore.Error{Code: longshore.CodeUnreachable, Op: "open"})
	m.mu.Lock()
	m.breaks = append(m.breaks, time.Now())
	m.mu.Unlock()
	m.b.Drop("q")
	m.shaky = time.Now().Add(2 * time.Second)
}

func (m *modelled) wait() {
	<-time.After(rapid.SampledFrom([]time.Duration{time.Millisecond, 37 * time.Millisecond, 3 * time.Second}).Draw(m.T, "time"))
}

// check is what holds whenever nothing moves.
func (m *modelled) check() {
	synctest.Wait()
	if m.stopping != nil {
		select {
		case <-m.stopping:
			m.await()
		default:
		}
	}
	m.mu.Lock()
	states, wrong := m.states, m.wrong
	m.mu.Unlock()
	if len(wrong) > 0 {
		m.Fatalf("%s\n%s", wrong[0], strings.Join(m.trace, "\n"))
	}
	for i := 1; i < len(states); i++ {
		if from, to := states[i-1], states[i]; from != to && !slices.Contains(legal()[from], to) {
			m.Fatalf("from %s to %s: %v", from, to, states)
		}
	}
	if is, want := m.c.State(), m.state(); !slices.Contains(want, is) {
		m.Fatalf("it is %s, want %v", is, want)
	}
}

// legal are the ways between states.
func legal() map[string][]string {
	return map[string][]string{
		"starting":   {"running", "paused", "recovering", "draining", "stopped"},
		"running":    {"paused", "recovering", "draining"},
		"paused":     {"running", "recovering", "draining"},
		"recovering": {"running", "paused", "draining"},
		"draining":   {"stopped"},
		"stopped":    {"starting"},
	}
}

func (m *modelled) state() []container.State {
	up := container.StateRunning
	if m.paused {
		up = container.StatePaused
	}
	switch {
	case !m.started:
		return []container.State{container.StateNew}
	case m.stopping != nil:
		return []container.State{container.StateDraining}
	case m.b.Connections() == 0 && m.c.State() == container.StateStopped:
		return []container.State{container.StateStopped}
	case time.Now().Before(m.shaky):
		return []container.State{up, container.StateRecovering}
	}
	return []container.State{up}
}

func (m *modelled) event(e container.Event) {
	m.mu.Lock()
	m.note("event %s %s", e.Kind, e.Text)
	if e.Kind == container.EventDown || e.Kind == container.EventLost || e.Kind == container.EventDrained {
		m.breaks = append(m.breaks, e.Time)
	}
	m.mu.Unlock()
	if e.Kind == container.EventState {
		m.mu.Lock()
		m.states = append(m.states, e.Text)
		m.mu.Unlock()
	}
}

// sure: what was settled then is settled. The lock is held.
func (m *modelled) sure(msg *modelMessage) bool {
	return m.exact && msg.final != "" && !slices.ContainsFunc(m.breaks, msg.at.Equal)
}

func (m *modelled) bad(format string, args ...any) {
	m.mu.Lock()
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
	m.mu.Unlock()
}

// finish lets it work until nothing is left.
func (m *modelled) finish() {
	m.await()
	m.start()
	m.pause(false)
	<-time.After(5 * time.Minute)
	m.check()
	m.stop()
	m.await()
	m.wg.Wait()
	m.check()
	q, dead := m.b.Inspect("q"), m.b.Inspect("dead")
	if q.Ready+q.Unsettled+q.Delayed != 0 {
		m.Fatalf("the queue is not empty: %+v", q)
	}
	died, sure := 0, true
	for _, msg := range m.messages {
		switch msg.final {
		case "":
			m.Fatalf("message %d was never handled to its end", msg.no)
		case "dead":
			died++
		}
		sure = sure && m.sure(msg)
	}
	if q.Acked != uint64(len(m.messages)) || int(dead.Published) < died || sure && int(dead.Published) != died {
		m.Fatalf("%d messages, %d to be dead-lettered; the queue has %+v, the dead %+v", len(m.messages), died, q, dead)
	}
}
