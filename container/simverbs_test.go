package container_test

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// simVerb is what an operator, or the program, does. It reports whether it had an effect:
// a verb that was refused proves nothing about the fault beside it.
type simVerb struct {
	name string
	odds int
	do   func(w *simWorld, a, b int) bool
	// first: it needs a record that is held, and few are after most faults: it rarely
	// comes after the fault.
	first bool
}

var simVerbs = []simVerb{
	{name: "publish", odds: 16, do: (*simWorld).publish},
	{name: "wait", odds: 6, do: (*simWorld).waitLong},
	{name: "pause", odds: 6, do: (*simWorld).pause},
	{name: "resume", odds: 10, do: (*simWorld).resume},
	{name: "scale", odds: 3, do: (*simWorld).scale},
	{name: "hold", odds: 6, do: (*simWorld).holdOn},
	{name: "end hold", odds: 10, do: (*simWorld).holdOff},
	{name: "throttle", odds: 7, do: (*simWorld).throttle},
	{name: "retry now", odds: 40, do: (*simWorld).retryNow, first: true},
	{name: "dead-letter now", odds: 20, do: (*simWorld).deadLetterNow, first: true},
	{name: "release now", odds: 38, do: (*simWorld).releaseNow, first: true},
	{name: "stop", odds: 6, do: (*simWorld).stop},
	{name: "start", odds: 14, do: (*simWorld).start},
	{name: "let handlers go", odds: 2, do: (*simWorld).letGo},
}

// simFault is what happens to the broker, or to the way there.
type simFault struct {
	name string
	odds int
	do   func(w *simWorld, a, b int)
}

var simFaults = []simFault{
	{"none", 5, func(*simWorld, int, int) {}},
	{"cut", 2, (*simWorld).cut},
	{"take back", 2, (*simWorld).takeBack},
	{"refuse to open", 2, (*simWorld).refuseOpen},
	{"refuse dead letters", 2, (*simWorld).refuseDead},
	{"fail settlements", 2, (*simWorld).failSettle},
	{"slow calls", 2, (*simWorld).slowCalls},
	{"fail calls", 2, func(w *simWorld, a, _ int) { w.src.fail(1 + a%4) }},
	{"partition leaves", 2, (*simWorld).leave},
}

var errSimRefused = errors.New("refused by the simulation")

// publish sends a few messages; at times so many of one key that they fill the window.
func (w *simWorld) publish(a, b int) bool {
	n := 1 + a%12
	if a%9 == 0 {
		n = 60
	}
	for i := range n {
		w.mu.Lock()
		no := len(w.msgs)
		key := "k" + strconv.Itoa((b+no*(1+b%5))%6)
		if a%9 == 0 && i%12 > 0 {
			key = "hot"
		}
		m := &simMessage{no: no, key: key}
		w.msgs = append(w.msgs, m)
		w.byKey[key] = append(w.byKey[key], m)
		w.mu.Unlock()
		text := strconv.Itoa(no)
		if err := w.pub.Publish(context.Background(), "q", &longshore.Message{ID: text, Headers: longshore.Headers{{Name: longshore.HeaderID, Value: text}}, Key: []byte(key), Body: []byte(text)}); err != nil {
			w.bad("publish: %v", err)
		}
	}
	return true
}

// waitLong lets time pass; at times so much that a lease cannot be kept any longer.
func (w *simWorld) waitLong(a, _ int) bool {
	if a%3 == 0 && w.queue.Lease > 0 {
		wait(3 * w.queue.Lease)
	}
	return true
}

func (w *simWorld) pause(_, b int) bool {
	yields := w.queue.Lease > 0 && !w.queue.KeepLease && !w.paused
	if yields {
		w.publish(0, b) // more than is received, so that some of it waits for the end of the pause
	}
	w.c.Pause()
	effect := !w.paused
	w.paused = true
	w.mu.Lock()
	if effect {
		w.pausedAt = time.Now()
	}
	w.mu.Unlock()
	w.standstill()
	if yields {
		wait(w.queue.Lease) // so long that the container gives its place up
	}
	return effect
}

func (w *simWorld) resume(int, int) bool {
	effect := w.paused
	w.paused = false
	w.mu.Lock()
	w.pausedAt = time.Time{}
	w.mu.Unlock()
	w.standstill()
	w.c.Resume()
	return effect
}

func (w *simWorld) scale(a, b int) bool {
	n := container.Workers{Min: 1 + a%3, Max: 4 + b%6}
	w.mu.Lock()
	w.workers = n
	w.mu.Unlock()
	if err := w.c.Scale(n.Min, n.Max); err != nil {
		w.bad("scale: %v", err)
	}
	return true
}

func (w *simWorld) holdOn(int, int) bool { return w.setHold(true) }

func (w *simWorld) holdOff(int, int) bool { return w.setHold(false) }

func (w *simWorld) setHold(on bool) bool {
	if w.hold == nil || w.held == on {
		return false
	}
	w.held = on
	yields := on && w.queue.Lease > 0 && !w.queue.KeepLease && w.queue.SingleActive
	if yields {
		w.publish(0, w.permits)
	}
	if !on {
		w.standstill()
	}
	w.hold.set(on)
	w.standstill()
	if yields {
		wait(w.queue.Lease)
	}
	return w.started
}

func (w *simWorld) throttle(a, _ int) bool {
	if w.gate == nil {
		return false
	}
	w.permits = a % (simPermits + 1)
	if w.permits > 0 {
		w.standstill()
	}
	w.gate.set(w.permits)
	w.standstill()
	return true
}

// standstill notes since when work may not start.
func (w *simWorld) standstill() {
	switch stands := w.paused || w.held || w.permits == 0; {
	case !stands:
		w.idleFrom, w.taken = time.Time{}, -1
	case w.idleFrom.IsZero():
		w.idleFrom = time.Now()
	}
}

// record picks a record that the container holds in one of some states.
func (w *simWorld) record(n int, in ...container.HeldState) (h container.Held, m *simMessage) {
	held, _ := w.c.InFlight(0)
	var fit []container.Held
	for _, h := range held {
		for _, s := range in {
			if h.State == s {
				fit = append(fit, h)
			}
		}
	}
	if len(fit) == 0 {
		return h, nil
	}
	h = fit[n%len(fit)]
	no, err := strconv.Atoi(h.Record)
	if err != nil {
		w.bad("a record is called %q", h.Record)
		return h, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("record %s, which is %s", h.Record, h.State)
	return h, w.msgs[no]
}

// interrupts says whether a verb is for a record whose handler runs. With manual settling
// its lane would go on beside the handler.
func (w *simWorld) interrupts(b int) bool { return b%4 == 0 && w.cfg.Settle == container.SettleAuto }

func (w *simWorld) retryNow(a, _ int) bool {
	h, m := w.record(a, container.HeldParked, container.HeldMoving)
	if m == nil {
		return false
	}
	w.mu.Lock()
	m.hurried = true
	w.mu.Unlock()
	_, err := w.c.RetryNow(container.Intervention{Record: h.Record})
	return err == nil
}

func (w *simWorld) deadLetterNow(a, b int) bool {
	if w.cfg.DeadLetter.To == "" {
		return false
	}
	in := []container.HeldState{container.HeldParked, container.HeldReady, container.HeldBehind, container.HeldMoving}
	interrupt := w.interrupts(b)
	if interrupt {
		in = []container.HeldState{container.HeldRunning}
	}
	h, m := w.record(a, in...)
	if m == nil {
		return false
	}
	w.mu.Lock()
	before := m.givenUp
	if m.first.IsZero() {
		m.first = time.Now()
	}
	m.givenUp = true
	w.mu.Unlock()
	_, err := w.c.DeadLetterNow(container.Intervention{Record: h.Record, Interrupt: interrupt})
	if code := longshore.CodeOf(err); err != nil && code != longshore.CodeDeadLetter {
		w.mu.Lock()
		m.givenUp = before
		w.mu.Unlock()
		return false
	}
	return true
}

func (w *simWorld) releaseNow(a, b int) bool {
	in := []container.HeldState{container.HeldParked, container.HeldReady, container.HeldMoving}
	interrupt := w.interrupts(b)
	if interrupt {
		in = []container.HeldState{container.HeldRunning}
	}
	h, m := w.record(a, in...)
	if m == nil {
		return false
	}
	w.mu.Lock()
	m.hurried, m.released, m.endFrom = true, true, time.Time{} // also of one whose dead letter could not be moved
	w.mu.Unlock()
	_, err := w.c.ReleaseNow(container.Intervention{Record: h.Record, Interrupt: interrupt})
	return err == nil
}

// letGo lets the handlers go that hang.
func (w *simWorld) letGo(int, int) bool {
	w.mu.Lock()
	close(w.unhang)
	w.unhang = make(chan struct{})
	w.mu.Unlock()
	return true
}

// stop begins one, which goes on while other things happen.
func (w *simWorld) stop(a, b int) bool {
	if !w.started || w.stopping != nil {
		return false
	}
	if a%2 == 1 {
		w.awaitRetry(b)
	}
	soon := w.stopsAtOnce()
	w.mu.Lock()
	w.noStart = !w.idleFrom.IsZero() && time.Since(w.idleFrom) > time.Second
	w.breaks = time.Now()
	faults := w.faults
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	if b%5 == 0 {
		time.AfterFunc(30*time.Millisecond, cancel)
	}
	ended := make(chan struct{})
	w.stopping = ended
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(500 * time.Microsecond):
				w.sample()
			}
		}
	}()
	began := time.Now()
	go func() {
		defer close(ended)
		defer cancel()
		_ = w.c.Stop(ctx)
		w.sample()
		took := time.Since(began)
		switch {
		case took > w.c.StopBudget()+25*simLatency:
			w.bad("the stop took %v, its budget is %v: %v", took, w.c.StopBudget(), w.c.Report())
		case soon && took > 100*time.Millisecond && !w.brokeSince(faults): // else messages came back, and may be worked off
			w.bad("no handler ran, and the stop took %v: %v", took, w.c.Report())
		}
		w.mu.Lock()
		w.breaks, w.noStart = time.Now(), false
		w.mu.Unlock()
	}()
	return true
}

// awaitRetry brings about what is rare by chance: a stop that finds nothing but a retry that
// waits, where work that was received is finished because returns are counted.
func (w *simWorld) awaitRetry(b int) {
	if !w.queue.CountsReturns || !w.idleFrom.IsZero() || w.slowNow() || w.armed || w.queue.SettleLinger > 0 || w.batch {
		return
	}
	w.letGo(0, 0)
	for n := 0; n < 200 && !w.stopsAtOnce(); n++ {
		if w.b.Inspect("q").Unsettled == 0 {
			w.publish(1, b)
		}
		wait(5 * time.Millisecond)
	}
}

// stopsAtOnce says whether there is nothing that a stop has to wait for.
func (w *simWorld) stopsAtOnce() bool {
	if w.slowNow() || w.armed || w.queue.SettleLinger > 0 || w.batch {
		return false
	}
	w.mu.Lock()
	running := w.calls
	broken := !w.breaks.Before(time.Now()) // what was lost has not been noticed everywhere
	w.mu.Unlock()
	if running > 0 || broken || w.c.Stats().ReadyToStart > 0 && w.idleFrom.IsZero() {
		return false
	}
	if !w.idleFrom.IsZero() && time.Since(w.idleFrom) > time.Second || !w.queue.CountsReturns {
		return true
	}
	// Where returns are counted work is finished, but a retry that waits holds nothing up.
	i := w.b.Inspect("q")
	return w.idleFrom.IsZero() && i.Ready == 0 && i.Unsettled > 0 && i.Unsettled == w.c.Stats().Parked
}

// start begins another run, once what the last one left has ended.
func (w *simWorld) start(a, _ int) bool {
	if w.stopping != nil {
		select {
		case <-w.stopping:
			w.stopping, w.started = nil, false
		default:
			return false
		}
	}
	if w.started {
		return false
	}
	w.letGo(0, 0)
	for w.handling() > 0 { // of handlers that were abandoned
		wait(10 * time.Millisecond)
	}
	w.started, w.taken = true, -1
	w.standstill()
	forbidden := a%5 == 1 && w.idleFrom.IsZero()
	if forbidden {
		w.b.FailOpen("q", 1, &longshore.Error{Code: longshore.CodeAuth, Op: "open", Err: errSimRefused})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	switch err := w.c.Start(ctx); {
	case err == nil:
	case forbidden && errors.Is(err, errSimRefused):
		w.sample()
		w.started = false
	default:
		w.bad("start: %v", err)
	}
	return true
}

func (w *simWorld) handling() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

func (w *simWorld) cut(int, int) {
	w.broke()
	w.b.Drop("q")
}

func (w *simWorld) takeBack(int, int) {
	w.broke()
	w.b.TakeBack("q")
}

func (w *simWorld) refuseOpen(a, b int) {
	w.b.FailOpen("q", 1+a%3, &longshore.Error{Code: longshore.CodeUnreachable, Op: "open"})
	if b%2 == 0 {
		w.cut(a, b)
	}
}

func (w *simWorld) refuseDead(a, _ int) { w.b.FailPublish("dead", 1+a%3, errSimRefused) }

func (w *simWorld) failSettle(a, _ int) {
	w.broke()
	w.armed = true
	w.b.FailSettle(1+a%3, errSimRefused)
}

// slowCalls makes one call of the transport slow, or all of them fast again.
func (w *simWorld) slowCalls(a, b int) {
	w.slow++
	if a%4 == 0 {
		w.slow, w.fastFrom = 0, time.Now()
		w.b.DelayAll(0)
		return
	}
	ops := []memory.Op{memory.OpOpen, memory.OpReceive, memory.OpCancel, memory.OpRelease, memory.OpSettle, memory.OpFlush, memory.OpClose, memory.OpPublish}
	w.b.Delay(ops[b%len(ops)], time.Duration(1+a%8)*time.Millisecond)
}

// slowNow says whether a call of the transport may be slow. Its delay is 8 ms at most.
func (w *simWorld) slowNow() bool { return w.slow > 0 || time.Since(w.fastFrom) < 100*time.Millisecond }

// leave reports that a partition goes to another member. It does not go, so that what is
// given back comes here again, past what runs: an order is not to be expected.
func (w *simWorld) leave(a, _ int) {
	w.src.mu.Lock()
	obs, _ := w.src.obs.(transport.LeaveObserver)
	w.src.mu.Unlock()
	if obs == nil || w.queue.Partitions == 0 || w.cfg.Order == container.Order(container.ByKey) || w.stopping != nil || !w.started {
		return
	}
	part := int32(a % w.queue.Partitions)
	w.broke()
	obs.Leaving([]transport.TopicPartition{{Topic: "q", Partition: part}})
	w.mu.Lock()
	w.left[part] = time.Now()
	w.mu.Unlock()
}
