package container

import (
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/internal/keytext"
	"github.com/longshore-go/longshore/transport"
)

// Bottleneck is what limits a container now. Text is the whole sentence; the other fields
// are its parts, for programs.
type Bottleneck struct {
	// By is one of the constants; empty: nothing limits the container.
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

// Bare is b without the parts that may name ids, keys and people.
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
	ByDeadLetter = "dead letter"     // the dead-letter destination refuses a message for good
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

const (
	// oldCall is the age from which a call may be one that does not end, and from which a
	// container that has received nothing says so.
	oldCall = 8 * time.Second
	// hotShare is the share of the window from which a key limits the whole.
	hotShare = 0.4
	// keptLong is for how long a partition must stand still to be reported by the health
	// checks, if it has room left: an ordinary retry is over by then.
	keptLong = time.Minute
)

// Bottleneck says in one sentence what limits the container now: Stats().Bottleneck.
func (c *ListenerContainer) Bottleneck() Bottleneck { return c.Stats().Bottleneck }

func ctl(verb, name string) string { return "longshore ctl " + verb + " " + name }

// lifecycle is about a container that does not run.
func (s *situation) lifecycle() cause {
	c := cause{weight: stops, by: ByState}
	switch {
	case !s.begun:
		c.text = "it was not started"
	case s.axes.Sub == state.Failed && s.axes.Stop >= state.Closing:
		c.weight = ends
		c.text, c.do = s.lastText()
		c.text = "ended: " + c.text
	case s.State == StateStarting && s.axes.Holds.Has(state.Middleware): // the hold is why
	case s.State == StateStarting && s.lastErr != nil:
		c.text, c.do = s.lastText()
		c.text, c.since = "it is starting; the last attempt failed: "+c.text, s.downAt
	case s.State == StateStarting, s.State == StateDraining, s.State == StateStopped:
		c.text = "it is " + string(s.State)
	}
	return c
}

// intakeHeld is about an intake that is held on purpose.
func (s *situation) intakeHeld() cause {
	switch {
	case s.axes.Holds.Has(state.Middleware):
		who, _, _ := strings.Cut(s.HeldBy, ":")
		return cause{weight: stops, by: ByHold, text: "nothing is consumed: held by " + s.HeldBy, since: s.heldAt, who: who,
			do: "it ends when " + who + " lets go, which longshore ctl events reports"}
	case s.State == StateRecovering:
		c := cause{weight: stops, by: ByBroker, since: s.downAt}
		c.text, c.do = s.lastText()
		if c.do == "" {
			c.do = "longshore doctor TARGET checks the broker and the source"
		}
		c.text = "recovering: " + c.text
		return c
	case s.axes.Holds.Has(state.Operator):
		return cause{weight: odd, by: ByState, text: "it is paused" + byText(s.paused), since: s.paused.Since, who: s.paused.By, do: ctl("resume", s.Name) + " ends that"}
	}
	return cause{}
}

// notConsuming is about a container that has no part of the source.
func (s *situation) notConsuming() cause {
	switch {
	case s.Standby:
		return cause{by: ByStandby, text: "it stands by: another consumer is the active one", since: s.Subscribed}
	case s.partitions == 0:
		return cause{by: ByPartitions, text: "no partition is assigned to this instance: the group has as many members as partitions, or it is joining", since: s.Subscribed}
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

// throttledTo is about the gate.
func (s *situation) throttledTo() cause {
	waits := s.ReadyToStart > 0 || s.Backlog > 0
	switch {
	case s.Permits == 0:
		return s.gate(odd, ByPermits, "the throttle holds everything: 0 permits")
	case s.Rate == 0:
		return s.gate(odd, ByRate, "the throttle holds everything: rate 0")
	case s.Scaling.Limit == autoscale.LimitPermits, s.Permits > 0 && s.Busy >= s.Permits && waits:
		return s.gate(limits, ByPermits, fmt.Sprintf("permits: %d of %d are in use", s.Busy, s.Permits))
	case s.Scaling.Limit == autoscale.LimitRate, s.Rate > 0 && s.Busy < s.Workers && s.ReadyToStart > 0:
		return s.gate(limits, ByRate, fmt.Sprintf("the throttle's rate of %v per second", s.Rate))
	}
	return cause{}
}

// gate names who set a limit of the throttle, and how to undo it. A limit that a person
// set by hand is reported whatever its value: it may have been forgotten.
func (s *situation) gate(w weight, by, text string) cause {
	i := s.throttled
	c := cause{weight: w, by: by, text: text, since: i.Since, who: i.By, do: "raise it in the configuration, or with " + ctl("throttle", s.Name)}
	if i == (longshore.Intervention{}) {
		return c
	}
	c.weight = odd
	if i.Fleet {
		c.text, c.do = text+"; set for the fleet"+byText(i), ctl("throttle", s.Name)+" --fleet --clear ends that"
	} else {
		c.text, c.do = text+"; set"+byText(i), ctl("throttle", s.Name)+" --clear ends that"
	}
	return c
}

// unmovableLetters is about dead letters that their place refuses for good.
func (s *situation) unmovableLetters() cause {
	return cause{weight: stops, by: ByDeadLetter, text: s.unmovable, do: ctl("inflight", s.Name) + " shows them"}
}

// failures is about messages that are not done.
func (s *situation) failures() cause {
	switch {
	case s.loops.Messages > 0:
		return cause{weight: odd, by: ByReleases, text: whyLoops(s.loops), since: s.loops.Since, do: "it ends with its cause; " + ctl("inflight", s.Name) + " lists the held deliveries"}
	case s.failing.Share > 0:
		return s.mostFail()
	case s.alarm:
		return cause{weight: odd, by: ByAlarm, text: "the broker blocks publishers (an alarm): dead letters and delayed retries cannot be moved", since: s.alarmAt, do: "free memory or disk there; rabbitmq-diagnostics alarms names the alarm"}
	case s.Scaling.Limit == autoscale.LimitFailing:
		return cause{weight: odd, by: ByFailures, text: "nearly every call fails: more workers would only fail more", do: ctl("inflight", s.Name) + " shows the retries"}
	}
	return cause{}
}

// mostFail names the error of most calls. Parking that is full follows from it.
func (s *situation) mostFail() cause {
	f := s.failing
	c := cause{weight: odd, by: ByFailures, since: f.Since, text: fmt.Sprintf("%.0f %% of the last calls failed, most with %s (%s)", 100*f.Share, f.Code, f.Text), do: ctl("inflight", s.Name) + " shows the retries"}
	if s.parkingFull {
		c.weight, c.text = stops, c.text+fmt.Sprintf("; parking is full: %d retries wait here", s.Parked)
	}
	if s.deadLetter != "" {
		c.do += fmt.Sprintf(", longshore dlq list TARGET the dead letters in %.64s", s.deadLetter)
	}
	return c
}

// backedUp is about space that is used up.
func (s *situation) backedUp() cause {
	switch {
	case s.parkingFull:
		return cause{weight: stops, by: ByParking, text: fmt.Sprintf("parking is full: %d retries wait here, as many as Redelivery.Parked and MaxBytes allow", s.Parked), since: s.parkingAt, do: ctl("inflight", s.Name) + " shows them"}
	case s.aside >= 1: // some keys or partitions may still go on
		return cause{weight: odd, by: ByAside, text: fmt.Sprintf("too much waits behind blocked deliveries, %s: what comes now takes places from the others", s.blockedLane), do: ctl("stuck", s.Name) + " shows where"}
	}
	return cause{}
}

// stuckHandlers is about handlers that were reported as stuck.
func (s *situation) stuckHandlers() cause {
	if s.Stuck == 0 {
		return cause{}
	}
	c := cause{weight: odd, by: ByStuck, since: s.calls.stuckSince, do: ctl("stuck", s.Name) + " shows where"}
	which := fmt.Sprintf("%d of %d handlers are stuck", s.Stuck, s.Workers)
	if s.Stuck >= s.places {
		c.weight, which = stops, fmt.Sprintf("all %d handlers are stuck", s.Stuck)
	}
	c.text = fmt.Sprintf("%s%s, the oldest for %v", which, s.calls.partitions, round(s.now.Sub(s.calls.stuckSince)))
	return c
}

// endless is about calls that may be stuck and were not reported yet.
func (s *situation) endless() cause {
	limit, oldest := s.Scaling.Limit, s.calls.oldest
	c := cause{weight: odd, by: ByStuck, since: oldest.Since, do: ctl("stuck", s.Name) + " shows where"}
	age := time.Duration(0)
	if !oldest.Since.IsZero() {
		age = round(s.now.Sub(oldest.Since))
	}
	growing := limit == autoscale.LimitJudging || limit == autoscale.LimitPace
	switch {
	case limit == autoscale.LimitStalled && s.Busy > 0:
		c.text = fmt.Sprintf("%s and none ends, the oldest for %v", callsRun(s.Busy), age)
	case growing && s.calls.old > 0 && s.calls.old == s.Busy: // before the policy calls it a stall: it adds no workers either
		c.text = fmt.Sprintf("%s and none ended in the last %v, the oldest for %v", callsRun(s.Busy), oldCall, age)
	case s.calls.overdue > 0:
		c.text = fmt.Sprintf("the handler of message %.64s (key %q)%s has not returned for %v%s", oldest.Record, oldest.Key, andOthers(s.calls.overdue-1), age, usually(s.Handler))
	}
	return c
}

func callsRun(n int) string {
	if n == 1 {
		return "1 call runs"
	}
	return fmt.Sprintf("%d calls run", n)
}

// usually says how long the other calls take.
func usually(c Calls) string {
	if c.P99 == 0 {
		return ", and no other has ended lately"
	}
	return fmt.Sprintf("; 99 of 100 take less than %v", round(c.P99))
}

// slow is about handlers that take longer than before.
func (s *situation) slow() cause {
	if !s.Handler.Grown() || s.Busy == 0 {
		return cause{}
	}
	h := s.Handler
	return cause{weight: odd, by: BySlow, text: fmt.Sprintf("handlers take %v, %.0f times as long as before (%v): what they call is slow, and more workers would load it more", round(h.P50), float64(h.P50)/float64(h.Usual), round(h.Usual)),
		since: s.slowAt, do: ctl("throttle", s.Name) + " --permits N takes load off it"}
}

// blockedPartition is about a partition that does not move.
func (s *situation) blockedPartition() cause {
	for i := range s.BlockedPartitions {
		h := &s.BlockedPartitions[i]
		if !h.Full() && (s.Busy > 0 || s.ReadyToStart > 0) && s.now.Sub(h.Since) < keptLong {
			continue // the others go on, and so does its own partition
		}
		c := cause{by: ByBlocked, since: h.Since, do: ctl("inflight", s.Name) + " names the record; retry-now or dead-letter moves it",
			text: fmt.Sprintf("partition %d of %s stands still behind offset %d (key %.64q), which is not done%s; other partitions go on", h.Partition, h.Topic, h.Position, keytext.Of(h.Key), andOthers(full(s.BlockedPartitions[i+1:])))}
		if h.Cause != "" {
			c.text = fmt.Sprintf("partition %d of %s stands still at offset %d with %d offsets behind it: %s; other partitions go on", h.Partition, h.Topic, h.Position, h.Behind, h.Cause)
			c.do = h.Do
		}
		if h.Full() || s.now.Sub(h.Since) >= keptLong {
			c.weight = odd
		}
		return c
	}
	return cause{}
}

func full(of []transport.BlockedPartition) (n int) {
	for i := range of {
		if of[i].Full() {
			n++
		}
	}
	return n
}

func andOthers(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// atLimit is about what keeps a healthy container from doing more.
func (s *situation) atLimit() cause {
	spare, limit := s.Workers-s.Busy, s.Scaling.Limit
	switch {
	case s.HotShare >= hotShare && s.Queued > 0 && (spare > 0 || limit == autoscale.LimitLanes):
		name := "one key or partition"
		if s.hotKey != "" {
			name = fmt.Sprintf("key %q", s.hotKey)
		}
		return cause{by: ByHotKey, text: fmt.Sprintf("a hot key: %s holds %.0f %% of the window, one at a time", name, 100*s.HotShare), do: "only a faster handler or more keys help, not more workers"}
	case limit == autoscale.LimitLanes:
		return cause{by: ByLanes, text: fmt.Sprintf("lanes: %d keys or partitions have work, and each is handled one at a time", s.Lanes)}
	case limit == autoscale.LimitKnee:
		return cause{by: ByKnee, text: fmt.Sprintf("the downstream: more than %d workers brought nothing (the knee)", s.Scaling.Knee)}
	case limit == autoscale.LimitWindow:
		return cause{by: ByWindow, text: fmt.Sprintf("the bytes held: %d messages are %d KiB, and Config.MaxBytes allows no more", s.InFlight, s.Bytes>>10)}
	case limit == autoscale.LimitMax, s.Workers >= s.Max && s.Busy >= s.Workers && s.ReadyToStart > 0:
		return cause{by: ByMax, text: fmt.Sprintf("workers: all %d are there, and Workers.Max allows no more", s.Max)}
	case limit == autoscale.LimitJudging:
		return cause{by: ByPolicy, text: fmt.Sprintf("nothing for long: there are %d workers, and it is measured whether the last ones brought anything before more are added", s.Workers)}
	case limit == autoscale.LimitPace:
		return cause{by: ByPolicy, text: fmt.Sprintf("nothing for long: there are %d workers, and more are added step by step", s.Workers)}
	}
	return cause{}
}

// idle is about a container that has nothing to start.
func (s *situation) idle() cause {
	switch {
	case s.Busy > 0 || s.ReadyToStart+s.Queued > 0 || !s.BacklogAt.IsZero() && s.Backlog > 0:
		return cause{}
	case s.Parked > 0:
		return cause{text: fmt.Sprintf("nothing: no work can start now; %s here for the next attempt", waitHere(s.Parked))}
	case s.Received == 0 && !s.Subscribed.IsZero() && s.now.Sub(s.Subscribed) >= oldCall:
		text := fmt.Sprintf("nothing was ever received from %s %s", s.Transport, s.Source)
		if s.address != "" {
			text += " at " + s.address
		}
		do := "if messages should come, check the name, the vhost and the producers: longshore doctor TARGET"
		if s.declared {
			do = "Declare creates a name that is missing, also a wrong one; " + do
		}
		return cause{by: ByUnused, text: text, since: s.Since, do: do}
	}
	return cause{text: "nothing: no work waits"}
}

func waitHere(n int) string {
	if n == 1 {
		return "1 message waits"
	}
	return fmt.Sprintf("%d messages wait", n)
}
