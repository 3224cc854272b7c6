package container

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/internal/keytext"
	"github.com/longshore-go/longshore/transport"
)

// Bottleneck is what limits a container now. Text has it all; the other fields are its
// parts, for programs.
type Bottleneck struct {
	// By is a fixed word: one of the constants; empty: nothing does.
	By string `json:"by"`
	// Text is one sentence: the cause, since when, who, and what to do.
	Text string `json:"text"`
	// Since is when it began; zero: not known.
	Since time.Time `json:"since,omitzero"`
	// Who caused it: an operator, a middleware; "" for most causes.
	Who string `json:"who,omitempty"`
	// Do is the command that shows more or ends it, or a piece of advice.
	Do string `json:"do,omitempty"`
}

// Bare is b without what may name ids, keys and people.
func (b Bottleneck) Bare() Bottleneck { return Bottleneck{By: b.By, Since: b.Since} }

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
	ByLanes      = "lanes"          // fewer keys or partitions than workers
	ByKnee       = "knee"           // the downstream is saturated
	BySlow       = "slow handlers"  // handlers take several times as long as before
	ByUnused     = "never received" // nothing has come since the start
	ByFailures   = "failures"
	ByWindow     = "window" // the bytes that may be held
	ByMax        = "max"
	ByPolicy     = "policy" // the autoscaler is on its way
)

// Pressure is what Why looks at besides Stats.
type Pressure struct {
	Now         time.Time
	HotKey      string // of the lane that holds Stats.HotShare; "" if it has no readable name
	ParkingFull bool
	ParkingAt   time.Time // since when; zero: not known
	Unmovable   string    // what the dead-letter place refuses for good, and why; "": nothing
	// Aside is how much of its space is used by what waits behind blocked deliveries, 0 to
	// 1 and beyond; BlockedLane is where the most of it waits.
	Aside       float64
	BlockedLane BlockedLane
	Blocked     bool // the broker blocks publishers
	BlockedAt   time.Time
	Partitions  int  // of this instance; −1: the source has none, or they are not known
	Old         int  // calls that have run for longer than 8 s
	Overdue     int  // calls that have run far longer than others take
	Oldest      Call // of those
	Loops       Loops
	Failing     Failing
	SlowAt      time.Time // since when handlers take several times as long as before
	// Down is since when there is no subscription, Advice the hint of its error.
	Down   time.Time
	Advice string
	// Paused and Throttled are who did that.
	Paused, Throttled longshore.Intervention
	Declared          bool   // Declare may have created the source
	Address           string // of the broker
	DeadLetter        string // where dead letters go; "": nowhere of ours
}

// oldCall is the age from which on a call may be one that does not end, and from which on
// a container that has received nothing says so.
const oldCall = 8 * time.Second

// hot is the share of the window from which on a key is one that limits.
const hotShare = 0.4

// Bottleneck says in one sentence what limits the container now.
func (c *ListenerContainer) Bottleneck() Bottleneck {
	st, p := c.Stats(), Pressure{Now: c.set.clock.Now(), Partitions: -1, Address: c.set.about.Address, DeadLetter: c.set.dead.To}
	c.mu.Lock()
	r := c.cur
	p.Paused = c.pausedBy
	c.mu.Unlock()
	if g, ok := c.set.gate.(longshore.Intervened); ok {
		p.Throttled, _ = g.Intervention()
	}
	if r != nil {
		r.pressure(&p)
	}
	return Why(st, p)
}

func (r *engine) pressure(p *Pressure) {
	r.mu.Lock()
	g, now, v := r.sub.gen, r.now(), &r.count.vitals
	for _, w := range r.pool.workers {
		if w.runs(now) > oldCall {
			p.Old++
		}
	}
	p.Overdue, p.Oldest = r.overdue(now)
	p.ParkingFull, p.Blocked, p.Unmovable = r.parkFull, r.blocked, r.unmovableText()
	p.ParkingAt, p.BlockedAt, p.SlowAt = v.since[condParking], v.since[condAlarm], v.since[condSlow]
	p.Failing, p.Declared, p.Loops = r.failing(now), v.declared, r.loops.worst(now)
	if g == nil {
		p.Down = r.sub.downAt
		var e *longshore.Error
		if errors.As(r.sub.lastErr, &e) {
			p.Advice = e.Hint
		}
	}
	if hot, ok := r.sched.Longest(nil); ok && !r.s.byPartition {
		p.HotKey = r.laneName(hot.Key)
	}
	p.Aside, p.BlockedLane = r.sched.AsideShare(), r.blockedLane()
	r.mu.Unlock()
	if g != nil {
		if a, ok := g.c.(transport.Partitioner); ok {
			p.Partitions = a.Partitions()
		}
	}
}

// cause is what a look has found, before it is a sentence.
type cause struct {
	by, text string
	since    time.Time
	who      string
	do       string
}

func (c cause) sentence(now time.Time) Bottleneck {
	b := Bottleneck{By: c.by, Text: c.text, Since: c.since, Who: c.who, Do: c.do}
	if !c.since.IsZero() {
		b.Text += ", since " + clockText(c.since, now)
	}
	if c.do != "" {
		b.Text += "; " + c.do
	}
	return b
}

// clockText is a time of the last hours by its hour, another by its date too.
func clockText(t, now time.Time) string {
	if now.Sub(t) < 12*time.Hour {
		return t.Local().Format(time.TimeOnly)
	}
	return t.Local().Format(time.DateTime)
}

// Why is what [ListenerContainer.Bottleneck] says of a container that stands like this; whatever
// shows a container, the console and the commands among them, takes its sentence from
// here. What stops everything comes first, then what keeps more from being done.
func Why(st Stats, p Pressure) Bottleneck {
	for _, look := range []func(Stats, Pressure) cause{whyNothing, whyGate, whySick, whyStands, whyBusy, whyIdle} {
		if c := look(st, p); c.text != "" {
			return c.sentence(p.Now)
		}
	}
	return Bottleneck{Text: fmt.Sprintf("nothing: %d of %d workers are busy, and they follow the load", st.Busy, st.Workers)}
}

// whyNothing is about containers that take nothing at all.
func whyNothing(st Stats, p Pressure) cause {
	switch st.State {
	case StateNew:
		return cause{by: ByState, text: "it was not started"}
	case StateStarting, StateDraining, StateStopped:
		return cause{by: ByState, text: "it is " + string(st.State)}
	}
	switch {
	case st.HeldBy != "":
		who, _, _ := strings.Cut(st.HeldBy, ":")
		return cause{by: ByHold, text: "nothing is consumed: held by " + st.HeldBy, since: p.Down, who: who}
	case st.State == StateRecovering:
		do := p.Advice
		if do == "" {
			do = "longshore doctor TARGET checks the broker and the source"
		}
		return cause{by: ByBroker, text: "it is not subscribed; " + st.Reason, since: p.Down, do: do}
	case st.State == StatePaused:
		return cause{by: ByState, text: "it is paused" + byText(p.Paused), since: p.Paused.Since, who: p.Paused.By, do: ctl("resume", st.Name) + " ends that"}
	case st.Standby:
		return cause{by: ByStandby, text: "it stands by: another consumer is the active one", since: st.Subscribed}
	case p.Partitions == 0:
		return cause{by: ByPartitions, text: "no partition is assigned to this instance: the group has as many members as partitions, or it joins this moment", since: st.Subscribed}
	}
	return cause{}
}

// byText names who intervened, and why.
func byText(i longshore.Intervention) string {
	text := ""
	if i.By != "" {
		text = " by " + i.By
	}
	if i.Reason != "" {
		text += " (" + i.Reason + ")"
	}
	if !i.Until.IsZero() {
		text += " until " + i.Until.Local().Format(time.TimeOnly)
	}
	return text
}

func ctl(verb, name string) string { return "longshore ctl " + verb + " " + name }

// whyGate is about the throttle.
func whyGate(st Stats, p Pressure) cause {
	waits := st.ReadyToStart > 0 || st.Backlog > 0
	i := p.Throttled
	gate := func(by, text string) cause {
		c := cause{by: by, text: text, since: i.Since, who: i.By, do: "raise it in the configuration, or by " + ctl("throttle", st.Name)}
		switch {
		case i.Fleet:
			c.text, c.do = text+"; set for the fleet"+byText(i), ctl("throttle", st.Name)+" --fleet --clear ends that"
		case i != (longshore.Intervention{}):
			c.text, c.do = text+"; set"+byText(i), ctl("throttle", st.Name)+" --clear ends that"
		}
		return c
	}
	switch {
	case st.Permits == 0:
		return gate(ByPermits, "the throttle holds everything: 0 permits")
	case st.Rate == 0:
		return gate(ByRate, "the throttle holds everything: rate 0")
	case st.Scaling.Limit == autoscale.LimitPermits, st.Permits > 0 && st.Busy >= st.Permits && waits:
		return gate(ByPermits, fmt.Sprintf("permits: %d of %d are in use", st.Busy, st.Permits))
	case st.Scaling.Limit == autoscale.LimitRate, st.Rate > 0 && st.Busy < st.Workers && st.ReadyToStart > 0:
		return gate(ByRate, fmt.Sprintf("the throttle's rate of %v per second", st.Rate))
	}
	return cause{}
}

// whySick is about what is wrong.
func whySick(st Stats, p Pressure) cause {
	shows := ctl("stuck", st.Name) + " shows where"
	oldest := st.Oldest // which may be that of something that waits
	if !p.Oldest.Since.IsZero() {
		oldest = p.Now.Sub(p.Oldest.Since)
	}
	switch {
	case st.Stuck > 0:
		return cause{by: ByStuck, text: fmt.Sprintf("%d of %d handlers are stuck, the oldest for %v", st.Stuck, st.Workers, round(oldest)), since: p.Oldest.Since, do: shows}
	case p.Unmovable != "":
		return cause{by: ByDeadLetter, text: p.Unmovable, do: ctl("inflight", st.Name) + " shows it"}
	case p.Loops.Messages > 0:
		return cause{by: ByReleases, text: whyLoops(p.Loops), since: p.Loops.Since, do: "it ends with its cause; " + ctl("inflight", st.Name) + " shows what is here"}
	case p.Failing.Share > 0:
		return whyFailing(st, p)
	case p.ParkingFull:
		return cause{by: ByParking, text: fmt.Sprintf("parking is full: %d retries wait here, as many as Redelivery.Parked and MaxBytes allow", st.Parked), since: p.ParkingAt, do: ctl("inflight", st.Name) + " shows them"}
	case p.Aside >= 1:
		return cause{by: ByAside, text: fmt.Sprintf("too much waits behind blocked deliveries, %s: what comes now takes places from the others", p.BlockedLane), do: shows}
	case p.Blocked:
		return cause{by: ByAlarm, text: "the broker blocks publishers (an alarm): dead letters and delayed retries cannot be moved", since: p.BlockedAt, do: "free memory or disk there; rabbitmq-diagnostics alarms names the alarm"}
	case st.Scaling.Limit == autoscale.LimitFailing:
		return cause{by: ByFailures, text: "nearly every call fails: more workers would only fail more"}
	case st.Scaling.Limit == autoscale.LimitStalled:
		return cause{by: ByStuck, text: fmt.Sprintf("%s and none ends, the oldest for %v", callsRun(st.Busy), round(oldest)), since: p.Oldest.Since, do: shows}
	case growing(st) && p.Old > 0 && p.Old == st.Busy: // before the policy calls it a stall: it adds nobody either
		return cause{by: ByStuck, text: fmt.Sprintf("%s and none ended in the last %v, the oldest for %v", callsRun(st.Busy), oldCall, round(oldest)), since: p.Oldest.Since, do: shows}
	case p.Overdue > 0:
		return cause{by: ByStuck, text: fmt.Sprintf("the handler of message %.64s (key %q)%s has not returned for %v%s", p.Oldest.Record, p.Oldest.Key, andOthers(p.Overdue-1), round(p.Now.Sub(p.Oldest.Since)), usually(st.Handler)), since: p.Oldest.Since, do: shows}
	case st.Handler.Grown() && st.Busy > 0:
		return cause{by: BySlow, text: fmt.Sprintf("handlers take %v, %.0f times as long as before (%v): what they call is slow, and more workers would load it more", round(st.Handler.P50), float64(st.Handler.P50)/float64(st.Handler.Usual), round(st.Handler.Usual)),
			since: p.SlowAt, do: ctl("throttle", st.Name) + " --permits N takes load off it"}
	}
	return cause{}
}

func andOthers(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// usually says how long the others take.
func usually(c Calls) string {
	if c.P99 == 0 {
		return ", and no other has ended lately"
	}
	return fmt.Sprintf("; 99 of 100 take less than %v", round(c.P99))
}

func whyFailing(st Stats, p Pressure) cause {
	f := p.Failing
	c := cause{by: ByFailures, since: f.Since, text: fmt.Sprintf("%.0f %% of the last calls failed, most with %s (%s)", 100*f.Share, f.Code, f.Text), do: ctl("inflight", st.Name) + " shows what waits for a retry"}
	if p.DeadLetter != "" {
		c.do += fmt.Sprintf(", longshore dlq list TARGET what was given up to %.64s", p.DeadLetter)
	}
	return c
}

// whyStands is about partitions that do not move.
func whyStands(st Stats, _ Pressure) cause {
	for _, h := range st.BlockedPartitions {
		if !h.Full() && (st.Busy > 0 || st.ReadyToStart > 0) {
			continue // the others go on, and so does its own partition
		}
		return cause{by: ByBlocked, text: fmt.Sprintf("partition %d of %s stands still behind offset %d (key %.64q), which is not done; other partitions go on", h.Partition, h.Topic, h.Position, keytext.Of(h.Key)),
			since: h.Since, do: fmt.Sprintf("longshore ctl inflight %s names the record; retry-now or dead-letter moves it", st.Name)}
	}
	return cause{}
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
func whyBusy(st Stats, p Pressure) cause {
	spare := st.Workers - st.Busy
	switch {
	case st.HotShare >= hotShare && st.Queued > 0 && (spare > 0 || st.Scaling.Limit == autoscale.LimitLanes):
		name := "one key or partition"
		if p.HotKey != "" {
			name = fmt.Sprintf("key %q", p.HotKey)
		}
		return cause{by: ByHotKey, text: fmt.Sprintf("a hot key: %s holds %.0f %% of the window, one at a time", name, 100*st.HotShare), do: "only a faster handler or more keys help, not more workers"}
	case st.Scaling.Limit == autoscale.LimitLanes:
		return cause{by: ByLanes, text: fmt.Sprintf("lanes: %d keys or partitions have work, and each is handled one at a time", st.Lanes)}
	case st.Scaling.Limit == autoscale.LimitKnee:
		return cause{by: ByKnee, text: fmt.Sprintf("the downstream: more than %d workers brought nothing (the knee)", st.Scaling.Knee)}
	case st.Scaling.Limit == autoscale.LimitWindow:
		return cause{by: ByWindow, text: fmt.Sprintf("the bytes held: %d messages are %d KiB, and Config.MaxBytes allows no more", st.InFlight, st.Bytes>>10)}
	case st.Scaling.Limit == autoscale.LimitMax, st.Workers >= st.Max && st.Busy >= st.Workers && st.ReadyToStart > 0:
		return cause{by: ByMax, text: fmt.Sprintf("workers: all %d are there, and Workers.Max allows no more", st.Max)}
	case st.Scaling.Limit == autoscale.LimitJudging:
		return cause{by: ByPolicy, text: fmt.Sprintf("nothing for long: there are %d workers, and it is measured whether the last ones brought anything before more are added", st.Workers)}
	case st.Scaling.Limit == autoscale.LimitPace:
		return cause{by: ByPolicy, text: fmt.Sprintf("nothing for long: there are %d workers, and more are added step by step", st.Workers)}
	}
	return cause{}
}

// whyIdle is about a container that has nothing to start.
func whyIdle(st Stats, p Pressure) cause {
	switch {
	case st.Busy > 0 || st.ReadyToStart+st.Queued > 0 || !st.BacklogAt.IsZero() && st.Backlog > 0:
		return cause{}
	case st.Parked > 0:
		return cause{text: fmt.Sprintf("nothing: no work can start now; %s here for the next attempt", waitHere(st.Parked))}
	case st.Received == 0 && !st.Subscribed.IsZero() && p.Now.Sub(st.Subscribed) >= oldCall:
		text := fmt.Sprintf("nothing was ever received from %s %s", st.Transport, st.Source)
		if p.Address != "" {
			text += " at " + p.Address
		}
		do := "if messages should come, check the name, the vhost and the producers: longshore doctor TARGET"
		if p.Declared {
			do = "Declare creates a name that is missing, also a wrong one; " + do
		}
		return cause{by: ByUnused, text: text, since: st.Since, do: do}
	}
	return cause{text: "nothing: no work waits"}
}

func waitHere(n int) string {
	if n == 1 {
		return "1 message waits"
	}
	return fmt.Sprintf("%d messages wait", n)
}
