package kafka

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// A client tries to reach its cluster for ever and tells nobody. The watcher ends
// the consumer when nobody has answered for a while, so that its container knows,
// shows it and opens it again when the cluster is back.
const (
	watchEvery  = time.Second
	quietAfter  = 5 * time.Second  // then it asks
	silentAfter = 10 * time.Second // and without an answer by then the cluster is away
)

// link notes when a broker has answered last.
type link struct {
	last   atomic.Int64 // Unix nanoseconds
	dialed atomic.Pointer[error]
}

func (l *link) alive() { l.last.Store(time.Now().UnixNano()) }

func (l *link) silence() time.Duration { return time.Duration(time.Now().UnixNano() - l.last.Load()) }

// OnBrokerRead is a hook of the client.
func (l *link) OnBrokerRead(_ kgo.BrokerMetadata, _ int16, _ int, _, _ time.Duration, err error) {
	if err == nil {
		l.alive()
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
		c.heal()
		for _, p := range c.assigned() {
			p.warn(time.Now())
			p.unblock() // nobody tells when a container begins to retry
		}
	}
}

// ask sends a request that any broker can answer. The answer itself says nothing
// new, that there is one does.
func (c *consumer) ask() {
	ctx, cancel := context.WithTimeout(c.over, quietAfter)
	defer cancel()
	err := c.cl.Ping(ctx)
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

// warn tells when a record that is not done holds up much of its partition, in
// steps.
func (p *partition) warn(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.t.size() == 0 {
		p.told = 0
		return
	}
	if p.headSeq != p.t.head || p.headSince.IsZero() {
		p.headSeq, p.headSince, p.told = p.t.head, now, 0
	}
	age := now.Sub(p.headSince)
	window := p.limit()
	used := p.t.size() * 100 / max(1, window)
	step := 0
	for i, limit := range []int{10, 50, 90} {
		if used >= limit {
			step = i + 1
		}
	}
	if step <= p.told || age < stuckAfter {
		return
	}
	p.told = step
	key := "its key is not known: it waits for a retry"
	if d := p.t.held[p.t.slot(p.t.head)]; d != nil {
		key = fmt.Sprintf("key %.64q", d.Received().Key)
	}
	p.c.tell.event(transport.Event{Kind: transport.EventNotice,
		Text: fmt.Sprintf("%s: offset %d of %s (%s) is not done for %s and holds back %d %% of the partition's window of %d; look at its handler, or dead-letter it",
			p.c.src.title(), p.t.offsets[p.t.slot(p.t.head)], p.key, key, age.Round(time.Second), used, window)})
}

// stuckAfter keeps what is only slow out of the log.
const stuckAfter = 5 * time.Second
