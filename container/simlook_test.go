package container_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// What the simulation expects: of each handler call that begins and ends, after each step,
// and when everything has come to rest.

// begin notes a handler call, and looks whether it may be made.
func (w *simWorld) begin(d *longshore.Delivery, no int) (m *simMessage, n int, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, began = w.msgs[no], time.Now()
	if m.runs++; m.first.IsZero() {
		m.first = began
	}
	w.calls++
	w.running[m.key]++
	w.lastCall[m.key] = began
	w.note("message %d of %s begins, attempt %d", no, m.key, d.Attempt)
	owned := d.Owned() // of what is lost, or of a batch's part that is, only the handler knows nothing yet
	switch {
	case m.ended && !m.released && !w.excused(m) && owned:
		w.badLocked("message %d is handled again, and nothing had happened to it", no)
	case m.notYet.After(began) && !m.hurried && m.said.After(w.breaks) && owned && !w.armed && w.queue.Lease == 0:
		w.badLocked("message %d comes again %v before its time", no, m.notYet.Sub(began))
	case w.noStart && !w.batch:
		w.badLocked("message %d is started by a stop while no work was allowed to start", no)
	case d.Attempt > simAttempts && w.cfg.DeadLetter.To != "" && w.breaks.IsZero() && !w.armed && w.queue.Lease == 0:
		w.badLocked("attempt %d of message %d", d.Attempt, no)
	case owned && !w.batch && w.leftBefore(d):
		w.badLocked("message %d is started, and its partition had left", no)
	case !w.pausedAt.IsZero() && d.Origin.ReceivedAt.Sub(w.pausedAt) > 25*simLatency && !w.queue.CountsReturns: // else a hold takes in what the transport has buffered
		w.badLocked("message %d was received %v after the pause", no, d.Origin.ReceivedAt.Sub(w.pausedAt))
	}
	m.hurried = false
	m.released = m.released && w.batch // a part of a batch that an operator releases still comes to its turn
	if w.cfg.Order == container.Order(container.ByKey) && !w.batch {
		w.ordered(m)
	}
	return m, m.runs, began
}

// excused says whether a message that was handled to its end may come again: it could be
// lost since that call began.
func (w *simWorld) excused(m *simMessage) bool {
	return m.endFrom.IsZero() || !w.breaks.Before(m.endFrom) || w.armed || w.queue.Lease > 0
}

func (w *simWorld) leftBefore(d *longshore.Delivery) bool {
	at, ok := w.left[d.Origin.Partition]
	return ok && w.queue.Partitions > 0 && d.Origin.ReceivedAt.Before(at)
}

// ordered looks whether all that came before a message in its lane have ended.
func (w *simWorld) ordered(m *simMessage) {
	if w.running[m.key] > 1 {
		w.badLocked("two handlers of key %s run at once (message %d)", m.key, m.no)
	}
	for _, before := range w.byKey[m.key] {
		if before == m {
			return
		}
		if !before.ended && !before.givenUp {
			w.badLocked("message %d of key %s overtook %d", m.no, m.key, before.no)
		}
	}
}

// end notes what a handler call came to.
func (w *simWorld) end(ctx context.Context, d *longshore.Delivery, m *simMessage, began time.Time, err error) {
	w.sample()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls--
	w.running[m.key]--
	verdict, delay := longshore.VerdictOf(err)
	w.note("message %d of %s ends: %v, %v", m.no, m.key, err, context.Cause(ctx))
	keeps := w.cfg.DeadLetter.To == ""
	m.notYet = time.Time{}
	switch {
	case err == nil:
		m.done++
	case errors.Is(err, context.Canceled): // it was interrupted: that is not its own word
		return
	case verdict == longshore.VerdictReject && !keeps:
		m.dies = true
	case verdict == longshore.VerdictRelease:
		return
	case d.Attempt >= simAttempts && !keeps:
		m.dies = true
	default:
		if delay > 0 && !keeps && !w.batch && d.Owned() {
			m.notYet, m.said = time.Now().Add(delay), time.Now()
		}
		return
	}
	switch {
	case !d.Owned(), ctx.Err() != nil, m.released, m.givenUp: // it was lost or interrupted meanwhile: it may come again
		m.endFrom = time.Time{}
	case !m.ended || m.endFrom.IsZero():
		m.endFrom = began
	}
	m.ended = true
}

// look compares what can be seen after a step with what must be.
func (w *simWorld) look() {
	if w.stopping != nil {
		select {
		case <-w.stopping:
			w.stopping, w.started = nil, false
			if n := w.b.Connections(); n != 1 { // the simulation's own publisher
				w.bad("%d connections are left after the stop", n-1)
			}
		default:
		}
	}
	if err := container.CheckSums(w.c); err != nil {
		w.bad("%w", err)
	}
	if i := w.b.Inspect("q"); i.Published != uint64(i.Ready+i.Unsettled+i.Delayed)+i.Acked+i.DeadLettered+i.Dropped {
		w.bad("messages are lost at the broker: %+v", i)
	}
	w.lookAtStates()
	w.lookAtStats()
	w.lookAtStandstill()
}

func (w *simWorld) lookAtStates() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 1; i < len(w.states); i++ {
		if from, to := w.states[i-1], w.states[i]; from != to && !slices.Contains(legal()[from], to) {
			w.badLocked("from %s to %s: %v", from, to, w.states)
		}
	}
	if n := len(w.states); n > 1 {
		w.states = w.states[n-1:]
	}
}

func (w *simWorld) lookAtStats() {
	if w.stopping != nil || !w.started {
		return
	}
	st := w.c.Stats()
	calls := w.handling()
	if st.Busy != calls && !w.batch && !w.slowNow() && w.cfg.Settle == container.SettleAuto {
		w.bad("%d handlers run, and %d are counted", calls, st.Busy)
	}
	if _, total := w.c.InFlight(1); total > st.InFlight+st.Parked+st.Blocked {
		w.bad("%d records are shown, and %d + %d + %d counted", total, st.InFlight, st.Parked, st.Blocked)
	}
}

// lookAtStandstill looks whether anything is taken from the broker while no work may start.
func (w *simWorld) lookAtStandstill() {
	if w.idleFrom.IsZero() || w.stopping != nil || !w.started {
		w.taken = -1
		return
	}
	st := w.c.Stats()
	opened := st.Subscribed.After(w.idleFrom) // during the standstill
	if time.Since(w.idleFrom) < 2*time.Second || !opened && !w.paused && !w.held {
		w.taken = -1
		return
	}
	n := w.b.Inspect("q").Unsettled
	if w.taken >= 0 && n > w.taken {
		w.bad("%d messages are taken while no work may start; there were %d", n, w.taken)
	}
	w.taken = n
}

// rest ends all faults and waits: first with the handlers that hang, which must not keep
// other keys from going on, then without.
func (w *simWorld) rest() error {
	w.calm()
	// Where every worker's handler hangs, the pool does not grow: more would hang too.
	if err := w.c.Scale(w.workers.Max, w.workers.Max+1); err != nil {
		w.bad("scale: %v", err)
	}
	wait(time.Minute)
	synctest.Wait()
	w.look()
	w.othersWentOn()
	for range 120 {
		w.letGo(0, 0)
		wait(5 * time.Second)
		synctest.Wait()
		w.look()
		if i := w.b.Inspect("q"); i.Ready+i.Unsettled+i.Delayed == 0 && w.handling() == 0 {
			break
		}
	}
	w.allEnded()
	w.stop(0, 1)
	if w.stopping != nil {
		<-w.stopping
	}
	w.look()
	if rep := w.c.Report(); rep != nil && rep.Bad() {
		w.bad("the last stop: %v", rep)
	}
	if w.gate != nil {
		if out, _ := w.gate.out(); out != 0 {
			w.bad("%d permits are out in the end", out)
		}
	}
	return w.failure()
}

// calm ends all faults and everything that keeps work from starting.
func (w *simWorld) calm() {
	w.b.DelayAll(0)
	w.slow, w.fastFrom = 0, time.Now()
	w.src.fail(0)
	w.b.FailOpen("q", 0, nil)
	w.b.FailPublish("dead", 0, nil)
	if w.armed {
		w.broke()
		w.b.FailSettle(0, nil)
		w.armed = false
	}
	if w.stopping != nil {
		<-w.stopping
	}
	w.start(0, 0)
	w.resume(0, 0)
	w.setHold(false)
	w.throttle(simPermits, 0)
}

// othersWentOn: a handler that hangs blocks its own lane, and no other.
func (w *simWorld) othersWentOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	permits := w.workers.Max
	if w.gate != nil {
		permits = min(permits, simPermits)
	}
	if w.cfg.Order != container.Order(container.ByKey) || w.batch || w.hung == 0 || w.hung >= permits || w.queue.Partitions > 0 {
		return
	}
	for key, msgs := range w.byKey {
		if w.running[key] > 0 || time.Since(w.lastCall[key]) < 20*time.Second {
			continue
		}
		for _, m := range msgs {
			if !m.ended && !m.givenUp {
				w.badLocked("message %d of key %s waits, and only other keys hang", m.no, key)
			}
		}
	}
}

// allEnded looks whether each message has come to one of its ends, and only to one.
func (w *simWorld) allEnded() {
	if i := w.b.Inspect("q"); i.Ready+i.Unsettled+i.Delayed != 0 {
		w.bad("it never comes to rest: %+v, %v", i, w.c.Bottleneck())
	}
	dead := map[int]int{}
	browser, _ := w.b.Queue("dead", memory.QueueConfig{}).(transport.Browser)
	for from := ""; browser != nil; {
		ds, next, err := browser.Browse(context.Background(), from, 1000)
		if err != nil {
			var e *longshore.Error
			if errors.As(err, &e) && e.Code == longshore.CodeNotFound {
				break
			}
			w.bad("browse: %v", err)
			break
		}
		for _, d := range ds {
			no, _ := strconv.Atoi(string(d.Body))
			dead[no]++
		}
		if len(ds) == 0 || next == "" {
			break
		}
		from = next
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.msgs {
		switch n := dead[m.no]; {
		case m.done == 0 && n == 0:
			w.badLocked("message %d is lost: handled %d times, never to its end", m.no, m.runs)
		case n > 0 && !m.dies && !m.givenUp:
			w.badLocked("message %d is dead-lettered for nothing", m.no)
		case n > 1 && w.breaks.Before(m.first) && w.queue.Lease == 0:
			w.badLocked("message %d is dead-lettered %d times", m.no, n)
		}
	}
}

// close ends what goes on, also after a failure.
func (w *simWorld) close() {
	w.b.DelayAll(0)
	w.mu.Lock()
	close(w.unhang)
	w.unhang = make(chan struct{})
	w.mu.Unlock()
	_ = w.c.Stop(context.Background())
	if w.stopping != nil {
		<-w.stopping
	}
	for w.handling() > 0 {
		wait(10 * time.Millisecond)
	}
	_ = w.pub.Close(context.Background())
}
