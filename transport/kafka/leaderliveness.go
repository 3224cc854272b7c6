package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Of a partition whose leader is away or does not answer the client says nothing and goes
// on trying: it looks like one without new records. So whoever has not answered a fetch
// for a while is asked for the ends of its logs.

// answerWait bounds a question to the leaders of partitions. One that does not answer must
// not hold up the others.
const answerWait = 3 * time.Second

// nodes notes when each broker has answered last for its logs.
type nodes struct{ last sync.Map } // int32 → time.Time

func (n *nodes) answered(id int32, key int16) {
	if key == int16(kmsg.Fetch) || key == int16(kmsg.ListOffsets) {
		n.last.Store(id, time.Now())
	}
}

// silence is for how long a broker has not answered; the second is false if it never has.
func (n *nodes) silence(id int32) (time.Duration, bool) {
	at, _ := n.last.Load(id)
	last, ok := at.(time.Time)
	if !ok {
		return 0, false
	}
	return time.Since(last), true
}

// listen asks for partitions that nothing was heard of, and tells of those whose leaders do
// not answer.
func (c *consumer) listen() {
	ask, asked := map[string][]int32{}, []*partition{}
	pressing := false
	for _, p := range c.assigned() {
		switch silence, ever := c.silence(p); {
		case !p.active() || c.ails(p.key.topic):
		case ever && silence < quietAfter:
			c.audible(p)
		default:
			ask[p.key.topic] = append(ask[p.key.topic], p.key.num)
			asked = append(asked, p)
			pressing = pressing || p.isSilent()
		}
	}
	if len(asked) == 0 || !pressing && time.Since(c.listened) < quietAfter {
		return
	}
	c.listened = time.Now()
	ends, err := c.listOffsets(c.over, ask, -1)
	if err != nil {
		return
	}
	now := time.Now()
	var mute []*partition
	for _, p := range asked {
		if end, ok := ends[tp{p.key.topic, p.key.num}]; ok {
			p.mu.Lock()
			p.logEnd = max(p.logEnd, end)
			p.mu.Unlock()
			c.audible(p)
		} else {
			silence, _ := c.silence(p)
			if p.unheard(now.Add(-max(silence, now.Sub(c.listened))), now) {
				mute = append(mute, p)
			}
		}
	}
	c.tellMute(mute, now)
}

// ails: the topic is looked for, and that is told.
func (c *consumer) ails(topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.healing[topic] != nil
}

// silence is for how long a partition's leader has not answered; the second is false if it
// never has, or there is none.
func (c *consumer) silence(p *partition) (time.Duration, bool) {
	leader, _, err := c.cl.PartitionLeader(p.key.topic, p.key.num)
	if err != nil || leader < 0 {
		return 0, false
	}
	return c.link.nodes.silence(leader)
}

func (p *partition) isSilent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.silent.IsZero()
}

func (p *partition) active() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed && !p.leaving && !p.gone
}

// unheard notes that the leader was asked in vain; true if that is so for long enough to
// tell.
func (p *partition) unheard(since, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent.IsZero() {
		p.silent = since
	}
	return now.Sub(p.silent) >= silentAfter
}

// audible is the end of a partition's silence.
func (c *consumer) audible(p *partition) {
	p.mu.Lock()
	since, told := p.silent, p.muteTold
	p.silent, p.muteTold = time.Time{}, false
	p.mu.Unlock()
	if told {
		c.tell.event(transport.Event{Kind: transport.EventNotice,
			Text: fmt.Sprintf("%s: the leader of %s answers again, after %s", c.src.title(), p.key, time.Since(since).Round(time.Second))})
	}
}

func (c *consumer) tellMute(ps []*partition, now time.Time) {
	if len(ps) == 0 {
		return
	}
	since := now
	for _, p := range ps {
		p.mu.Lock()
		p.muteTold = true
		if p.silent.Before(since) {
			since = p.silent
		}
		p.mu.Unlock()
	}
	err := c.src.silentError(ps)
	c.trouble("leaders", transport.Event{Kind: transport.EventNotice, Err: err,
		Text: fmt.Sprintf("%s, for %s; %s", longshoreError(err).Text(), now.Sub(since).Round(time.Second), longshoreError(err).Hint)})
}

const namedMost = 5 // partitions in a text

func (s *groupSource) silentError(ps []*partition) error {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = p.key.String()
	}
	slices.Sort(names)
	list := strings.Join(names[:min(len(names), namedMost)], ", ")
	if more := len(names) - namedMost; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return &longshore.Error{Code: longshore.CodeUnreachable, Op: s.title() + ": read " + list, Source: s.name(),
		Err: errors.New("the leader does not answer"), Hint: "nothing is read of them meanwhile; look at that broker, or at the network to it"}
}
