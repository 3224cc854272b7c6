package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// healing is a topic that the cluster does not know as we do.
type healing struct {
	next    time.Time // not before
	tries   int
	missed  int  // looks in a row that did not find it
	renewed bool // it has another identity than the client knows
}

const (
	healFirst = time.Second
	healMost  = 15 * time.Second
)

// fetchErrors sorts what a poll complained of.
func (c *consumer) fetchErrors(errs []kgo.FetchError) {
	for _, e := range errs {
		c.fetchError(e)
	}
}

func (c *consumer) fetchError(e kgo.FetchError) {
	var (
		session *kgo.ErrGroupSession
		loss    *kgo.ErrDataLoss
	)
	switch err := e.Err; {
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed), errors.Is(err, errUnpackLater):
	case errors.Is(err, kgo.ErrMaxDecompress): // see oversized
	case errors.As(err, &session):
		c.sessionError(session.Err)
	case errors.As(err, &loss):
		c.tell.event(transport.Event{Kind: transport.EventSkipped, Err: err, Skipped: transport.SkippedTruncated,
			Text: fmt.Sprintf("%s: the log of %s/%d was cut off: read up to %d, reading on at %d", c.src.title(), e.Topic, e.Partition, loss.ConsumedTo, loss.ResetTo)})
	case errors.Is(err, kerr.TopicAuthorizationFailed) && c.denied(e.Topic, time.Now()):
		c.fail(c.src.b.failure("consume for "+c.src.title()+" at "+c.src.b.address(), c.src.name(), err))
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.InconsistentTopicID),
		errors.Is(err, kerr.TopicAuthorizationFailed):
		c.markBroken(e.Topic)
		why := c.src.b.failure(fmt.Sprintf("%s: topic %q", c.src.title(), e.Topic), e.Topic, err)
		c.trouble("topic "+e.Topic, transport.Event{Kind: transport.EventNotice, Err: why,
			Text: fmt.Sprintf("%s; it is looked for, and subscribed to anew", longshoreError(why).Text())})
	case errors.Is(err, kerr.OffsetOutOfRange) && c.src.cfg.OutOfRange == Fail:
		c.fail(&longshore.Error{Code: longshore.CodeRefused, Op: fmt.Sprintf("read %s/%d for %s", e.Topic, e.Partition, c.src.title()), Source: c.src.name(),
			Err: errors.New("the position is not in the log any more (OFFSET_OUT_OF_RANGE)"), Hint: "set the group's offset by hand, or OutOfRange to ToEarliest or ToLatest"})
	case kerr.IsRetriable(err):
	default:
		c.trouble(fmt.Sprintf("fetch %s/%d", e.Topic, e.Partition), transport.Event{Kind: transport.EventNotice, Err: err,
			Text: fmt.Sprintf("%s: reading %s/%d failed%s: %v", c.src.title(), e.Topic, e.Partition, c.failedAt(tp{e.Topic, e.Partition}), err)})
	}
}

// refusal is a topic that may not be read.
type refusal struct{ since, last time.Time }

const (
	deniedFor   = 2 * time.Second  // a node may learn of a permission later than others
	deniedApart = 30 * time.Second // or it was granted meanwhile
)

// denied notes that a topic may not be read; true if none of them may.
func (c *consumer) denied(topic string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.refused[topic]
	if now.Sub(r.last) > deniedApart {
		r.since = now
	}
	r.last = now
	c.refused[topic] = r
	return !c.src.cfg.Pattern && !slices.ContainsFunc(c.src.topics, func(t string) bool {
		r := c.refused[t]
		return now.Sub(r.since) < deniedFor || now.Sub(r.last) > deniedApart
	})
}

// failedAt says where, and the way out: a batch that nobody can read holds its
// partition until an administrator moves the group past it.
func (c *consumer) failedAt(k tp) string {
	c.mu.Lock()
	p := c.parts[k]
	c.mu.Unlock()
	if p == nil {
		return ""
	}
	return fmt.Sprintf(" at offset %d, and is tried again; if that does not pass, move the group's position behind it", p.expected())
}

// sessionError: this member is not in the group. The client joins again by itself,
// except where that cannot help.
func (c *consumer) sessionError(err error) {
	var ke *kerr.Error
	if errors.As(err, &ke) {
		switch ke {
		case kerr.GroupAuthorizationFailed, kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.FencedInstanceID,
			kerr.InconsistentGroupProtocol, kerr.InvalidGroupID, kerr.UnsupportedVersion, kerr.GroupMaxSizeReached,
			kerr.InvalidSessionTimeout, kerr.InvalidRequest, kerr.UnsupportedAssignor, kerr.InvalidRegularExpression:
			c.fail(c.src.b.failure(c.src.title()+" at "+c.src.b.address(), c.src.name(), ke))
			return
		}
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	c.trouble("session", transport.Event{Kind: transport.EventNotice, Err: err,
		Text: fmt.Sprintf("%s: not in the group: %v; joining again", c.src.title(), err)})
}

// markBroken notes a topic to be subscribed to anew.
func (c *consumer) markBroken(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.healing[topic] == nil {
		c.healing[topic] = &healing{next: time.Now().Add(healFirst)}
	}
}

// heal looks for topics that were deleted, and subscribes anew to those that were made
// again: the client never adopts the new identity of a topic.
func (c *consumer) heal() {
	c.survey()
	now := time.Now()
	c.mu.Lock()
	due := map[string]bool{}
	for topic, h := range c.healing {
		if now.After(h.next) && !c.closed && c.end == nil {
			due[topic] = h.renewed
			h.tries++
			h.next = now.Add(min(healMost, healFirst<<min(h.tries-1, 5)))
		}
	}
	c.mu.Unlock()
	for topic, renewed := range due {
		c.again(topic, renewed)
	}
	if c.src.cast {
		c.enlarged()
	}
}

func (c *consumer) again(topic string, renewed bool) {
	ctx, cancel := context.WithTimeout(c.over, quietAfter)
	defer cancel()
	resp, err := metadata(ctx, c.cl, topic)
	if err != nil || len(resp.Topics) == 0 {
		return
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			c.missed(topic)
		}
		return // still away
	}
	id := resp.Topics[0].TopicID
	if !renewed && id == c.topicID(topic) && id != [16]byte{} && !c.fetchless(topic) {
		c.mu.Lock()
		delete(c.healing, topic) // but what is told of it stays told: it may not be read
		c.mu.Unlock()
		return
	}
	c.mu.Lock()
	c.ids[topic] = id
	leaving := c.leaving
	c.mu.Unlock()
	c.abandonTopic(topic)
	if leaving {
		c.markHealthy(topic)
		return
	}
	c.cl.PurgeTopicsFromConsuming(topic)
	if c.src.cast {
		_ = c.broadcastTopic(ctx, topic) // tried again at the next tick
	} else {
		c.cl.AddConsumeTopics(topic)
	}
	c.markHealthy(topic)
	c.tell.event(transport.Event{Kind: transport.EventNotice, Text: fmt.Sprintf("%s: topic %q exists again and is subscribed to anew", c.src.title(), topic)})
}

// fetchless: nothing of the topic is assigned here, so subscribing anew loses nothing.
func (c *consumer) fetchless(topic string) bool { return len(c.partitionsOf(topic)) == 0 }

func (c *consumer) partitionsOf(topic string) (ps []*partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, p := range c.parts {
		if k.topic == topic {
			ps = append(ps, p)
		}
	}
	return ps
}

func (c *consumer) markHealthy(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.healing, topic)
	delete(c.troubles, "topic "+topic)
}
