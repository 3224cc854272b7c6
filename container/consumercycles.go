package container

import (
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

// consumerCycles counts one worker's cycles as Spring AMQP counts those of a consumer
// (see autoscale.Spring). It is plain and takes the time; the pool's lock guards it.
type consumerCycles struct {
	waiting bool      // for a message, since then:
	since   time.Time // when the last receive began that has not come to its end
	got     int       // messages of the cycle that runs
	active  int       // active cycles in a row
	idle    int       // idle cycles in a row
}

// tripped is how often the triggers were passed.
type tripped struct{ active, idle int }

// begins notes that a message came. The receives before it that found nothing have ended
// as cycles.
func (c *consumerCycles) begins(now time.Time, of *autoscale.Cycles) tripped {
	t := c.elapse(now, of)
	c.waiting = false
	return t
}

// ends notes that the message is handled. A failure ends the cycle and counts for nothing.
func (c *consumerCycles) ends(now time.Time, failed bool, of *autoscale.Cycles) (t tripped) {
	c.waiting, c.since = true, now
	if failed {
		c.got = 0
		return t
	}
	if c.got++; c.got >= of.Batch {
		t.active = c.cycle(true, of)
	}
	return t
}

// elapse counts the receives that have ended without a message.
func (c *consumerCycles) elapse(now time.Time, of *autoscale.Cycles) (t tripped) {
	if c.since.IsZero() {
		c.waiting, c.since = true, now
	}
	if !c.waiting {
		return t
	}
	for now.Sub(c.since) >= of.Wait {
		c.since = c.since.Add(of.Wait)
		if c.got > 0 {
			t.active += c.cycle(true, of)
		} else {
			t.idle += c.cycle(false, of)
		}
	}
	return t
}

// hold takes time off in which nothing could be received.
func (c *consumerCycles) hold(dt time.Duration) {
	if c.waiting && !c.since.IsZero() {
		c.since = c.since.Add(dt)
	}
}

// cycle ends a cycle and reports 1 if a trigger was passed. Both counts are compared before
// they are raised, so that it takes two cycles more than the trigger says.
func (c *consumerCycles) cycle(active bool, of *autoscale.Cycles) int {
	c.got = 0
	run, other, trigger := &c.idle, &c.active, of.Idle
	if active {
		run, other, trigger = &c.active, &c.idle, of.Active
	}
	*other = 0
	passed := *run > trigger
	if *run++; !passed {
		return 0
	}
	*run = 0
	return 1
}
