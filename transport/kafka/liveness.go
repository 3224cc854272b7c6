package kafka

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
)

// A client tries to reach its cluster for ever and tells nobody. The watcher ends
// the consumer when nobody has answered for a while, so that its container knows,
// shows it and opens it again when the cluster is back.
const (
	watchEvery  = time.Second
	quietAfter  = 5 * time.Second  // then it asks
	silentAfter = 10 * time.Second // and without an answer by then the cluster is away
)

// link notes when a broker has answered last. It asks the clock that nobody sets: one
// that was put back by an hour would hide for as long that the cluster is away.
type link struct {
	last   atomic.Pointer[time.Time]
	dialed atomic.Pointer[error]
	nodes  nodes
	beat   atomic.Pointer[time.Time] // the last answer to a heartbeat of the consumer protocol
}

func (l *link) alive() {
	now := time.Now()
	l.last.Store(&now)
}

func (l *link) silence() time.Duration {
	if last := l.last.Load(); last != nil {
		return time.Since(*last)
	}
	return 0
}

// OnBrokerRead is a hook of the client.
func (l *link) OnBrokerRead(m kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err == nil {
		l.alive()
		l.nodes.answered(m.NodeID, key)
		if key == int16(kmsg.ConsumerGroupHeartbeat) {
			now := time.Now()
			l.beat.Store(&now)
		}
	}
}

// OnBrokerConnect is a hook of the client.
func (l *link) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		l.dialed.Store(&err)
	}
}

// watch asks when it is quiet, looks at topics that heal, and tells of partitions
// that are stuck.
func (c *consumer) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.over.Done():
			return
		}
		if c.link.silence() > quietAfter {
			c.ask()
		}
		c.listen()
		c.checkSession()
		c.heal()
		for _, p := range c.assigned() {
			if err := p.ended(); err != nil {
				c.fail(err)
			}
			p.warn(time.Now())
			p.unblock() // nobody tells when a container begins to retry
		}
	}
}

// checkSession ends a consumer whose group has not heard of it for so long that its
// partitions are with others. With the classic protocol the client sees to that; with the
// other one it goes on reading what it had for as long as the coordinator is out of reach.
func (c *consumer) checkSession() {
	last := c.link.beat.Load()
	cfg := &c.src.cfg
	if cfg.Protocol != Consumer || last == nil {
		return
	}
	silence := time.Since(*last)
	if silence < max(or(cfg.SessionTimeout, defaultSession), cfg.rebalance()) {
		return
	}
	c.fail(&longshore.Error{Code: longshore.CodeUnreachable, Op: c.src.title() + " at " + c.src.b.address(), Source: c.src.name(),
		Err:  fmt.Errorf("the group's coordinator has not answered for %s: the session is over", silence.Round(time.Second)),
		Hint: "look at the broker that coordinates the group, or at the network to it"})
}

// ask sends a request that any broker can answer. The answer itself says nothing
// new, that there is one does.
func (c *consumer) ask() {
	ctx, cancel := context.WithTimeout(c.over, quietAfter)
	defer cancel()
	err := answers(ctx, c.cl)
	if err == nil || c.over.Err() != nil {
		return
	}
	if silence := c.link.silence(); silence > silentAfter {
		if d := c.link.dialed.Load(); d != nil {
			err = *d
		}
		c.fail(&longshore.Error{Code: longshore.CodeUnreachable, Op: c.src.title() + " at " + c.src.b.address(), Source: c.src.name(),
			Err:  fmt.Errorf("no broker has answered for %s: %w", silence.Round(time.Second), shortDial(err)),
			Hint: "start a broker, or look at the network"})
	}
}
