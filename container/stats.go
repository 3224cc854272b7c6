package container

import (
	"maps"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/transport"
)

// counters are the sums of one run. Guarded by dispatcher.mu.
type counters struct {
	received, redelivered int64
	verdicts              [longshore.VerdictLost + 1]int64
	lost                  int64     // taken back by the broker
	stuck                 int64     // handlers that were ever reported as stuck
	last                  time.Time // of the last receive that brought something
	vitals                vitals
}

// endDelivery counts a verdict, and ends the call of the worker; nil: the delivery was
// settled by hand.
func (r *dispatcher) endDelivery(w *worker, j judgement) {
	r.count.verdicts[j.verdict]++
	r.count.vitals.verdict(j)
	r.load.calls.completed++
	if w != nil {
		r.endCall(w, j.end, j.took, j.err != nil)
	}
}

// endCall ends a handler call.
func (r *dispatcher) endCall(w *worker, end time.Time, took time.Duration, failed bool) {
	started := w.busy.Swap(0)
	switch {
	case w.hung: // its time says nothing about the usual latency
		r.pool.unhung(w)
	case started != 0:
		ln := lnSeconds(took)
		r.load.calls.ended(started, end, ln, failed)
		r.count.vitals.calls.add(ln)
	}
	if w.stuck {
		r.pool.unstuck(w)
		r.emit(Event{Kind: EventUnstuck, Delivery: r.factsOfWorker(w), Text: "a handler that was reported as stuck has returned"})
	}
	w.it, w.d = nil, nil
	w.waits, w.failed = 0, failed
	r.noteQueued()
}

// startableNow counts the deliveries here that could start: not those behind another of
// their lane, and no parked retries.
func (r *dispatcher) startableNow() int { return r.sched.Ready() + r.load.backlog.buffered }

// noteQueued notes whether work waits; called whenever a call ends and at the tick.
func (r *dispatcher) noteQueued() {
	if n := r.startableNow(); n > 0 {
		r.load.calls.queued(n, r.window()-r.pool.target)
	} else {
		r.load.calls.queued(0, 0)
	}
}

// State is what a container does.
type State string

// The states.
const (
	StateNew        State = "new"
	StateStarting   State = "starting"
	StateRunning    State = "running"
	StateRecovering State = "recovering" // running, but not subscribed
	StatePaused     State = "paused"
	StateDraining   State = "draining"
	StateStopped    State = "stopped"
)

// Stats is what a container did in its current or last run, and what it holds.
type Stats struct {
	Name      string
	Transport string
	Source    string
	State     State
	Since     time.Time // start of the run

	// Live is false only when the container ended by itself. Ready is true while
	// deliveries flow or could. Reason says why not, or what a person should know though
	// it is ready, such as a pause; empty: nothing. It is Bottleneck.Text then.
	Live, Ready bool
	Reason      string
	// Bottleneck is what limits the container now.
	Bottleneck Bottleneck
	// HeldBy names the middlewares that hold the intake, as "breaker: ledger is down";
	// empty: none does.
	HeldBy string

	// Generation counts subscriptions; Subscribed is when the current one began.
	Generation int
	Subscribed time.Time
	Standby    bool // another consumer is the active one

	Workers, Target, Min, Max int
	Scaling                   Scaling
	Busy                      int // handler calls that run now
	InFlight                  int // deliveries held: running, ready, queued in lanes
	ReadyToStart              int
	Queued                    int // behind others of their lane
	Parked                    int // waiting for a retry, with their followers
	Blocked                   int // behind one whose handler does not return; takes no place in Window
	Buffered                  int // in the transport, not yet handed out
	Window                    int
	Lanes                     int
	Bytes                     int64
	// HotShare is the largest share of the window that one lane holds.
	HotShare float64
	// Capacity is the share of worker time that was busy in the last tick, 0 to 1.
	Capacity float64
	// ConsumerCapacity is the share of the last 10 s in which a message would have been
	// started at once: 1 without traffic, 0 without a consumer and while all workers are
	// busy. Less than 1 means that more workers, more instances or faster handlers help.
	ConsumerCapacity float64
	// Permits and Rate are Throttle's limits; −1 = no limit.
	Permits int
	Rate    float64
	// Accepting is true while work may start: subscribed, not paused, held by a
	// middleware (a breaker that is open or on trial), draining or throttled to 0.
	// Without it more processes bring nothing, whatever the backlog is.
	Accepting bool

	Received, Redelivered, Lost int64
	Acked, Retried, Rejected    int64
	Discarded, Released         int64
	// FailedBy are the failed calls by the code of the error; CodeHandler where it has none.
	FailedBy map[longshore.Code]int64
	// Handler is how long handlers take.
	Handler Calls
	// ReleasedBy are the releases that handlers and middlewares asked for, by the code of
	// the reason.
	ReleasedBy         map[longshore.Code]int64
	VerdictLost        int64
	DeadLetters        map[longshore.Code]int64
	DeadLetterFailures int64
	SettleFailures     map[longshore.Code]int64
	Reopens            map[longshore.Code]int64
	// Skipped counts how often messages were skipped, as EventSkipped tells.
	Skipped    map[transport.SkipReason]int64
	Stuck      int   // handlers that are stuck now
	StuckTotal int64 // that ever were
	// BlockedPartitions are the messages that hold their partitions back, on logs (Kafka): the
	// oldest that are not done, the longest first, at most 100.
	BlockedPartitions []transport.BlockedPartition

	// LastDelivery is when something was received last. Oldest is how long ago the oldest
	// delivery that is held was received, whatever it does: it runs, waits for a worker or
	// a retry, or is blocked. On a log it is also the age of the oldest message that is not
	// done.
	LastDelivery time.Time
	Oldest       time.Duration

	// Backlog is the broker's count of waiting messages, read at BacklogAt; zero
	// time: unknown.
	Backlog   int64
	BacklogAt time.Time
}

// Stats returns a snapshot.
func (c *ListenerContainer) Stats() Stats {
	s := c.situation()
	return s.diagnose()
}

// stats fills in the numbers.
func (r *dispatcher) stats(st *Stats, now time.Time) {
	st.Since, st.Standby = r.began, r.sub.standby
	st.Workers, st.Target, st.Min, st.Max = r.pool.live, r.pool.target, r.pool.min, r.pool.max
	st.Scaling = r.load.scaling
	st.Scaling.Reasons = maps.Clone(st.Scaling.Reasons)
	q := r.sched
	st.InFlight, st.ReadyToStart, st.Queued = q.InWindow(), q.Ready(), q.Behind(dispatch.Open).N
	st.Parked, st.Blocked = q.Retries().N+q.Behind(dispatch.Waiting).N, q.Behind(dispatch.Hung).N+q.Behind(dispatch.Lost).N
	st.Window, st.Lanes, st.Bytes = r.window(), q.Lanes(), q.Total().Bytes
	st.Generation, st.Capacity, st.Buffered = r.sub.gens, r.load.calls.capacity, r.load.backlog.buffered
	st.Backlog, st.BacklogAt, st.LastDelivery = r.load.backlog.n, r.load.backlog.at, r.count.last
	if r.sub.gen != nil {
		st.Subscribed = r.sub.gen.since
	}
	st.ConsumerCapacity = r.load.capacity.shareOf(r.sub.gen, r.mayTake())
	c := &r.count
	st.Received, st.Redelivered, st.Lost = c.received, c.redelivered, c.lost
	st.Acked, st.Retried, st.Rejected = c.verdicts[longshore.VerdictAck], c.verdicts[longshore.VerdictRetry], c.verdicts[longshore.VerdictReject]
	st.Discarded, st.Released, st.VerdictLost = c.verdicts[longshore.VerdictDiscard], c.verdicts[longshore.VerdictRelease], c.verdicts[longshore.VerdictLost]
	rare := r.log.counts()
	st.DeadLetters, st.SettleFailures, st.Reopens = rare.dead, rare.settle, rare.reopens
	st.Skipped, st.ReleasedBy, st.DeadLetterFailures = rare.skipped, rare.released, rare.deadFailed
	st.FailedBy, st.Handler = clone(c.vitals.failed), c.vitals.calls.calls()
	st.StuckTotal = c.stuck
	if it := r.sched.Oldest(); it != nil {
		st.Oldest = now.Sub(time.Unix(0, it.received))
	}
	st.HotShare = r.hotShare()
}

func clone[K comparable](m map[K]int64) map[K]int64 {
	c := make(map[K]int64, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// hotShare is the part of the window that its longest lane takes, with its first item.
func (r *dispatcher) hotShare() float64 {
	if r.sched.Lanes() == 0 {
		return 0
	}
	n := r.sched.LongestWait() + 1
	return float64(n) / float64(max(r.window(), n))
}
