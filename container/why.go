package container

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport"
)

// Bottleneck is what limits a container now.
type Bottleneck struct {
	// By is a fixed word: one of the constants; empty: nothing does.
	By string `json:"by"`
	// Text is one sentence about it.
	Text string `json:"text"`
}

// What can limit a container.
const (
	ByState      = "state"      // it does not run: not started, paused, draining, stopped
	ByHold       = "hold"       // a middleware holds the intake, as an open breaker
	ByBroker     = "broker"     // not subscribed: the broker cannot be reached or refuses us
	ByStandby    = "standby"    // another consumer is the active one
	ByPartitions = "partitions" // this instance has none
	ByPermits    = "permits"
	ByRate       = "rate"
	ByParking    = "parking"         // no more retries can wait
	ByDeadLetter = "dead letter"     // the dead-letter place refuses a message for good
	ByBlocked    = "stuck partition" // a partition stands still behind a record that is not done
	ByAside      = "blocked keys"    // what waits behind blocked deliveries has used up its space
	ByAlarm      = "alarm"           // the broker blocks publishers
	ByStuck      = "stuck"           // handlers do not return
	ByReleases   = "releases"        // messages come back uncounted again and again
	ByHotKey     = "hot key"
	ByLanes      = "lanes" // fewer keys or partitions than workers
	ByKnee       = "knee"  // the downstream is saturated
	ByFailures   = "failures"
	ByWindow     = "window" // the bytes that may be held
	ByMax        = "max"
	ByPolicy     = "policy" // the autoscaler is on its way
)

// Pressure is what Why looks at besides Stats.
type Pressure struct {
	HotKey      string // of the lane that holds Stats.HotShare; "" if it has no readable name
	ParkingFull bool
	Unmovable   string // what the dead-letter place refuses for good, and why; "": nothing
	// Aside is how much of its space is used by what waits behind blocked deliveries, 0 to
	// 1 and beyond; BlockedLane is where the most of it waits.
	Aside       float64
	BlockedLane BlockedLane
	Blocked     bool  // the broker blocks publishers
	Partitions  int   // of this instance; −1: the source has none, or they are not known
	Old         int   // calls that have run for longer than 10 s
	Loops       Loops // messages that are released again and again
}

// oldCall is the age from which on a call may be one that does not end.
const oldCall = 10 * time.Second

// hot is the share of the window from which on a key is one that limits.
const hotShare = 0.4

// Why says in one sentence what limits the container now.
func (c *ListenerContainer) Why() Bottleneck {
	st, p := c.Stats(), Pressure{Partitions: -1}
	c.mu.Lock()
	r := c.cur
	c.mu.Unlock()
	if r != nil {
		r.pressure(&p)
	}
	return Why(st, p)
}

func (r *run) pressure(p *Pressure) {
	r.mu.Lock()
	g, now := r.gen, r.now()
	for _, w := range r.workers {
		if began := w.busy.Load(); began != 0 && now.Sub(time.Unix(0, began)) > oldCall {
			p.Old++
		}
	}
	p.ParkingFull, p.Blocked, p.Unmovable = r.parkFull, r.blocked, r.unmovableText()
	p.Loops = r.loops.worst(now)
	if hot, ok := r.sched.Longest(nil); ok && !r.s.byPartition {
		p.HotKey = cutText(string(hot.Key), 64)
	}
	p.Aside, p.BlockedLane = r.sched.AsideShare(), r.blockedLane()
	r.mu.Unlock()
	if g != nil {
		if a, ok := g.c.(transport.Partitioner); ok {
			p.Partitions = a.Partitions()
		}
	}
}

// Why is what [ListenerContainer.Why] says of a container that stands like this.
// What stops everything comes first, then what keeps more from being done.
func Why(st Stats, p Pressure) Bottleneck {
	for _, look := range []func(Stats, Pressure) (by, text string){whyNothing, whyGate, whySick, whyBusy} {
		if by, text := look(st, p); text != "" {
			return Bottleneck{by, text}
		}
	}
	if st.Busy == 0 && st.ReadyToStart+st.Queued == 0 && (st.BacklogAt.IsZero() || st.Backlog == 0) {
		return Bottleneck{"", "nothing: no work waits"}
	}
	return Bottleneck{"", fmt.Sprintf("nothing: %d of %d workers are busy, and they follow the load", st.Busy, st.Workers)}
}

// whyNothing is about containers that take nothing at all.
func whyNothing(st Stats, p Pressure) (by, text string) {
	switch st.State {
	case StateNew:
		return ByState, "it was not started"
	case StateStarting, StateDraining, StateStopped:
		return ByState, "it is " + string(st.State)
	}
	const held = "held by "
	switch {
	case len(st.Reason) > len(held) && st.Reason[:len(held)] == held:
		return ByHold, "nothing is consumed: " + st.Reason
	case st.State == StateRecovering:
		return ByBroker, "it is not subscribed; " + st.Reason
	case st.State == StatePaused:
		return ByState, "it is paused"
	case st.Standby:
		return ByStandby, "it stands by: another consumer is the active one"
	case p.Partitions == 0:
		return ByPartitions, "no partition is assigned to this instance: the group has as many members as partitions, or it joins this moment"
	}
	return "", ""
}

// whyGate is about the throttle.
func whyGate(st Stats, _ Pressure) (by, text string) {
	waits := st.ReadyToStart > 0 || st.Backlog > 0
	switch {
	case st.Permits == 0:
		return ByPermits, "the throttle holds everything: 0 permits"
	case st.Rate == 0:
		return ByRate, "the throttle holds everything: rate 0"
	case st.Scaling.Limit == autoscale.LimitPermits, st.Permits > 0 && st.Busy >= st.Permits && waits:
		return ByPermits, fmt.Sprintf("permits: %d of %d are in use", st.Busy, st.Permits)
	case st.Scaling.Limit == autoscale.LimitRate, st.Rate > 0 && st.Busy < st.Workers && st.ReadyToStart > 0:
		return ByRate, fmt.Sprintf("the throttle's rate of %v per second", st.Rate)
	}
	return "", ""
}

// whySick is about what is wrong.
func whySick(st Stats, p Pressure) (by, text string) {
	switch {
	case p.Aside >= 1:
		return ByAside, fmt.Sprintf("too much waits behind blocked deliveries, %s: what comes now takes places from the others", p.BlockedLane)
	case st.Stuck > 0:
		return ByStuck, fmt.Sprintf("%d of %d handlers are stuck, the oldest for %v; see longshore ctl stuck %s", st.Stuck, st.Workers, round(st.Oldest), st.Name)
	case p.Unmovable != "":
		return ByDeadLetter, p.Unmovable
	case p.Loops.Messages > 0:
		return ByReleases, whyLoops(p.Loops)
	case p.ParkingFull:
		return ByParking, fmt.Sprintf("parking is full: %d retries wait here, as many as Redelivery.Parked and MaxBytes allow", st.Parked)
	case p.Blocked:
		return ByAlarm, "the broker blocks publishers (an alarm): dead letters and delayed retries cannot be moved"
	case st.Scaling.Limit == autoscale.LimitFailing:
		return ByFailures, "nearly every call fails: more workers would only fail more"
	case st.Scaling.Limit == autoscale.LimitStalled:
		return ByStuck, fmt.Sprintf("%s and none ends, the oldest for %v", callsRun(st.Busy), round(st.Oldest))
	case growing(st) && p.Old > 0 && p.Old == st.Busy: // before the policy calls it a stall: it adds nobody either
		return ByStuck, fmt.Sprintf("%s and none ended in the last %v, the oldest for %v", callsRun(st.Busy), oldCall, round(st.Oldest))
	}
	for _, h := range st.StuckHeads {
		if h.Full() {
			return ByBlocked, fmt.Sprintf("partition %d of %s stands still behind offset %d (key %.64q), which is not done since %s; the others go on", h.Partition, h.Topic, h.Position, h.Key, h.Since.Format(time.TimeOnly))
		}
	}
	return "", ""
}

func callsRun(n int) string {
	if n == 1 {
		return "1 call runs"
	}
	return fmt.Sprintf("%d calls run", n)
}

// growing tells whether the policy is on its way to more workers.
func growing(st Stats) bool {
	return st.Scaling.Limit == autoscale.LimitJudging || st.Scaling.Limit == autoscale.LimitPace
}

// whyBusy is about what keeps a healthy container from doing more.
func whyBusy(st Stats, p Pressure) (by, text string) {
	spare := st.Workers - st.Busy
	switch {
	case st.HotShare >= hotShare && st.Queued > 0 && (spare > 0 || st.Scaling.Limit == autoscale.LimitLanes):
		name := "one key or partition"
		if p.HotKey != "" {
			name = fmt.Sprintf("key %q", p.HotKey)
		}
		return ByHotKey, fmt.Sprintf("a hot key: %s holds %.0f %% of the window, one at a time", name, 100*st.HotShare)
	case st.Scaling.Limit == autoscale.LimitLanes:
		return ByLanes, fmt.Sprintf("lanes: %d keys or partitions have work, and each is handled one at a time", st.Lanes)
	case st.Scaling.Limit == autoscale.LimitKnee:
		return ByKnee, fmt.Sprintf("the downstream: more than %d workers brought nothing (the knee)", st.Scaling.Knee)
	case st.Scaling.Limit == autoscale.LimitWindow:
		return ByWindow, fmt.Sprintf("the bytes held: %d messages are %d KiB, and Config.MaxBytes allows no more", st.InFlight, st.Bytes>>10)
	case st.Scaling.Limit == autoscale.LimitMax, st.Workers >= st.Max && st.Busy >= st.Workers && st.ReadyToStart > 0:
		return ByMax, fmt.Sprintf("workers: all %d are there, and Workers.Max allows no more", st.Max)
	case st.Scaling.Limit == autoscale.LimitJudging:
		return ByPolicy, fmt.Sprintf("nothing for long: there are %d workers, and it is measured whether the last ones brought anything before more are added", st.Workers)
	case st.Scaling.Limit == autoscale.LimitPace:
		return ByPolicy, fmt.Sprintf("nothing for long: there are %d workers, and more are added step by step", st.Workers)
	}
	return "", ""
}
