package kafka

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// A topic can be deleted while it is read, and made again under its name. Nothing of
// the old one may touch the new one: its deliveries are lost, its positions are not
// committed, and those that a group still has from it do not count.

// missedEnough looks in a row make sure of a deletion: a broker that has just started
// may not know a topic yet.
const missedEnough = 2

// survey asks now and then whether the topics are there. A group may have taken
// their partitions away, so that nothing is fetched that could fail.
func (c *consumer) survey() {
	c.mu.Lock()
	due := time.Since(c.surveyed) >= metadataAge && !c.closed && c.end == nil && !c.src.cfg.Pattern
	if due {
		c.surveyed = time.Now()
	}
	c.mu.Unlock()
	if !due || c.link.silence() > quietAfter {
		return
	}
	ctx, cancel := context.WithTimeout(c.over, quietAfter)
	defer cancel()
	resp, err := metadata(ctx, c.cl, c.src.topics...)
	if err != nil {
		return // asked again soon
	}
	c.learn(resp)
	for _, t := range resp.Topics {
		if t.Topic != nil && t.ErrorCode == kerr.UnknownTopicOrPartition.Code {
			c.markBroken(*t.Topic)
		}
	}
}

// missed counts a look that did not find a topic. Without any topic the consumer ends,
// so that its container is not ready; without one of several the others are read on.
func (c *consumer) missed(topic string) {
	c.mu.Lock()
	h := c.healing[topic]
	if h == nil {
		c.mu.Unlock()
		return
	}
	h.missed++
	n, leaving := h.missed, c.leaving
	none := !c.src.cfg.Pattern && !slices.ContainsFunc(c.src.topics, func(t string) bool {
		return c.healing[t] == nil || c.healing[t].missed < missedEnough
	})
	c.mu.Unlock()
	if n < missedEnough {
		return
	}
	c.abandonTopic(topic)
	err := &longshore.Error{Code: longshore.CodeNotFound, Op: "consume for " + c.src.title() + " at " + c.src.b.address(), Source: c.src.name(),
		Err: &wireError{text: fmt.Sprintf("topic %q was deleted", topic), kafka: kerr.UnknownTopicOrPartition}, Hint: "create it again, or set Declare"}
	switch {
	case leaving:
	case none:
		c.fail(err)
	case n == missedEnough:
		c.tell.event(transport.Event{Kind: transport.EventNotice, Err: err,
			Text: fmt.Sprintf("%s: topic %q was deleted; nothing of it comes until it is created again, others are read on", c.src.title(), topic)})
	}
}

// abandonTopic ends the partitions of a topic that is no more.
func (c *consumer) abandonTopic(topic string) {
	ps := c.partitionsOf(topic)
	c.gate.enter()
	for _, p := range ps {
		p.mu.Lock()
		p.gone = true
		p.mu.Unlock()
		p.close(&longshore.Error{Code: longshore.CodeLeaseLost, Op: "handle a record of " + p.key.String() + " for " + c.src.title(), Source: c.src.name(),
			Err: fmt.Errorf("its topic was deleted: %w", longshore.ErrLost), Hint: "what it did is not committed; the record is no more"})
		c.forfeit(p)
		c.src.starts.forget(p.key)
	}
	c.gate.leave()
	c.remove(ps)
}

// committable: the partition is this member's, and its topic the one that has the name
// now, as far as is known here. A commit by name would reach whatever has it: brokers
// before 4.1 are told no identity.
func (c *consumer) committable(p *partition) bool {
	if !c.owns(p) || c.topicID(p.key.topic) != p.key.id {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.gone
}

// fromOtherTopic: a position was committed in a topic that had this one's name. Brokers drop
// the positions with the topic, but not those that come late.
func (c *consumer) fromOtherTopic(key partitionOf, r commitRead) bool {
	none := [16]byte{}
	if (r.id == none || key.id == none || r.id == key.id) && !offsets.FromDeletedTopic(r.saved, c.markOf(key), r.offset) {
		return false
	}
	c.src.starts.formerly(key.topic)
	c.tell.event(transport.Event{Kind: transport.EventNotice,
		Text: fmt.Sprintf("%s: position %d of %s belongs to a topic of this name that was deleted; the new one is read from its beginning", c.src.title(), r.offset, key)})
	return true
}

func (c *consumer) markOf(key partitionOf) offsets.Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	return offsets.MarkOf(c.facts.id, key.id, key.topic)
}
