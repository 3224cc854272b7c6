package breaker_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/modeltest"
	"github.com/longshore-go/longshore/middleware/breaker"
)

// F-F07: calls that begin and end at any time, in any order and with any result, and
// containers that come and go: the breaker is in the state of the model, lets in whom
// that lets in, and tells each container what holds for it.
func TestModelOfABreaker(t *testing.T) {
	modeltest.Check(t, 60, func(t *rapid.T) { newModelled(t).run() })
}

type modelled struct {
	*rapid.T
	cfg breaker.Config
	b   *breaker.Breaker

	// The model.
	state   breaker.State
	round   int // of states
	fails   int // closed: in a row
	works   int // trial: likewise
	places  int // trial: that are taken
	tries   int // openings in a row
	until   time.Time
	armed   bool // a timer begins the trial
	inside  []*modelCall
	waiting []*modelCall
	watches []*modelWatch
	calls   int
}

type modelCall struct {
	round  int
	trial  bool
	result chan error

	mu      sync.Mutex
	entered bool
	ended   bool
	err     error
}

func (c *modelCall) looks() (entered, ended bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entered, c.ended, c.err
}

type modelWatch struct {
	held func() bool
	stop func()
}

func newModelled(t *rapid.T) *modelled {
	m := &modelled{T: t, state: breaker.Closed, cfg: breaker.Config{Ratio: 1, MinRequests: 1 << 30, Window: 10000 * time.Hour, Ramp: -1,
		Consecutive: rapid.IntRange(1, 4).Draw(t, "consecutive"), Trials: rapid.IntRange(1, 3).Draw(t, "trials"),
		OpenFor: 10 * time.Second, OpenMax: time.Minute}}
	var err error
	if m.b, err = breaker.New(m.cfg); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *modelled) run() {
	defer func() { // also of what has failed
		for _, c := range append(m.inside, m.waiting...) {
			close(c.result)
		}
		for _, w := range m.watches {
			w.stop()
		}
	}()
	act := func(f func()) func(*rapid.T) { return func(*rapid.T) { f() } }
	m.Repeat(map[string]func(*rapid.T){
		"":            act(m.check),
		"begin":       act(m.begin),
		"begin more":  act(m.begin),
		"works":       act(func() { m.end(nil) }),
		"fails":       act(func() { m.end(errors.New("down")) }),
		"fails again": act(func() { m.end(errors.New("down")) }),
		"unavailable": act(func() { m.end(breaker.Unavailable(nil)) }),
		"released":    act(func() { m.end(longshore.Release(errors.New("busy"), time.Second)) }),
		"watch":       act(m.watch),
		"unwatch":     act(m.unwatch),
		"wait":        act(m.wait),
	})
}

// begin is a message of its own, whose handler ends when it is told to.
func (m *modelled) begin() {
	if m.state == breaker.Open && !time.Now().Before(m.until) {
		m.begins()
	}
	m.calls++
	c := &modelCall{result: make(chan error, 1)}
	m.waiting = append(m.waiting, c)
	d := longshore.NewDelivery(context.Background(), nil, 0)
	d.ID = strconv.Itoa(m.calls)
	h := m.b.Wrap(handle(func(context.Context, *longshore.Delivery) error {
		c.mu.Lock()
		c.entered = true
		c.mu.Unlock()
		return <-c.result
	}))
	go func() {
		err := h.Handle(d.Context(), d)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended, c.err = true, err
	}()
	m.settle()
}

// settle moves those that may enter now, and checks that it is so many.
func (m *modelled) settle() {
	synctest.Wait()
	let := len(m.waiting)
	switch m.state {
	case breaker.Open:
		let = 0
	case breaker.Trial:
		let = min(let, m.cfg.Trials-m.places)
	}
	var left []*modelCall
	n := 0
	for _, c := range m.waiting {
		switch entered, ended, err := c.looks(); {
		case entered:
			n++
			c.round, c.trial = m.round, m.state == breaker.Trial
			m.inside = append(m.inside, c)
		case ended:
			if v, _ := longshore.VerdictOf(err); m.state != breaker.Open || v != longshore.VerdictRelease || !errors.Is(err, breaker.ErrOpen) {
				m.Fatalf("%s, and a call was refused: %v", m.state, err)
			}
		default:
			left = append(left, c)
		}
	}
	if m.state == breaker.Open && len(left) > 0 {
		m.Fatalf("open, and %d calls wait", len(left))
	}
	if n != let {
		m.Fatalf("%s, %d of %d calls were let in, want %d", m.state, n, len(m.waiting), let)
	}
	if m.waiting = left; m.state == breaker.Trial {
		m.places += n
	}
}

// end lets a handler return.
func (m *modelled) end(result error) {
	if len(m.inside) == 0 {
		m.Skip("no handler runs")
	}
	i := rapid.IntRange(0, len(m.inside)-1).Draw(m.T, "which")
	c := m.inside[i]
	m.inside = slices.Delete(m.inside, i, i+1)
	failed := result != nil
	if v, _ := longshore.VerdictOf(result); v == longshore.VerdictRelease {
		failed = false
	}
	if c.round == m.round {
		m.counts(result, failed)
	}
	c.result <- result
	synctest.Wait()
	_, ended, err := c.looks()
	v, _ := longshore.VerdictOf(err)
	switch {
	case !ended:
		m.Fatal("a call does not return")
	case failed && (v == longshore.VerdictRelease) != (c.trial || m.state != breaker.Closed):
		m.Fatalf("%s, a failure (in a trial: %t) ends as %v", m.state, c.trial, err)
	case !failed && !errors.Is(err, result):
		m.Fatalf("%v ends as %v", result, err)
	}
	m.settle()
}

// counts is what a result of this round does.
func (m *modelled) counts(result error, failed bool) {
	released := result != nil && !failed
	switch {
	case released:
		if m.state == breaker.Trial {
			m.places--
		}
	case failed && m.state == breaker.Closed:
		m.fails++
		if m.fails >= m.cfg.Consecutive || isUnavailable(result) {
			m.opens()
		}
	case failed:
		m.opens()
	case m.state == breaker.Closed:
		m.fails = 0
	default:
		if m.works++; m.works >= m.cfg.Trials {
			m.moves(breaker.Closed)
			m.tries = 0
		}
	}
}

func isUnavailable(err error) bool { return err.Error() == breaker.Unavailable(nil).Error() }

func (m *modelled) moves(to breaker.State) {
	m.state, m.fails, m.works, m.places = to, 0, 0, 0
	m.round++
}

func (m *modelled) opens() {
	wait := m.cfg.OpenFor
	for range m.tries {
		wait = min(2*wait, m.cfg.OpenMax)
	}
	m.tries++
	m.moves(breaker.Open)
	m.until, m.armed = time.Now().Add(wait), true
}

func (m *modelled) begins() { m.moves(breaker.Trial) }

func (m *modelled) wait() {
	<-time.After(rapid.SampledFrom([]time.Duration{time.Millisecond, 7001 * time.Millisecond, 61003 * time.Millisecond}).Draw(m.T, "time"))
	if m.state == breaker.Open && m.armed && !time.Now().Before(m.until) {
		m.begins()
	}
	m.settle()
}

func (m *modelled) watch() {
	held, stop := watch(m.b)
	m.watches = append(m.watches, &modelWatch{held.Load, stop})
	if m.state == breaker.Open && !m.armed {
		if m.armed = true; !time.Now().Before(m.until) {
			m.begins()
		}
	}
	m.settle()
}

// unwatch: without a container no timer goes on.
func (m *modelled) unwatch() {
	if len(m.watches) == 0 {
		m.Skip("nobody watches")
	}
	i := rapid.IntRange(0, len(m.watches)-1).Draw(m.T, "which")
	m.watches[i].stop()
	m.watches = slices.Delete(m.watches, i, i+1)
	if len(m.watches) == 0 {
		m.armed = false
	}
	m.settle()
}

// check compares.
func (m *modelled) check() {
	synctest.Wait()
	st := m.b.Status()
	if st.State != m.state || m.state == breaker.Open && !st.Until.Equal(m.until) {
		m.Fatalf("it is %+v, want %s until %v", st, m.state, m.until)
	}
	for _, w := range m.watches {
		if w.held() != (m.state == breaker.Open) {
			m.Fatalf("a container is held %t while it is %s", w.held(), m.state)
		}
	}
}
