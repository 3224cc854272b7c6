package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// topicHealth looks after topics that are deleted, recreated, or may not be read. The
// client never adopts the new identity of a topic (franz-go v1.22.3;
// https://github.com/twmb/franz-go/pull/1426): it has to be subscribed again, and nothing of
// the old topic may touch the new one. So the old topic's deliveries are lost, and its
// positions are neither committed nor counted.
type topicHealth struct {
	src         *Group       // which topics, and whether it declares them
	cl          *kgo.Client  // asks for their metadata
	life        *lifetime    // ended where a topic stays away in a way that no waiting cures
	topics      *topics      // identities, which change when a topic is made again
	assignments *assignments // whose partitions of a deleted topic are abandoned
	subscribe   subscriber   // takes a topic out of the subscription and back, which makes the client forget what it knew
	reports     *reports     // topics that went and came back

	opened time.Time // the topics that this consumer declares may be younger than a broker's view of them

	mu       sync.Mutex           // guards what follows
	broken   map[string]*recovery // topics that are looked for, by name
	refused  map[string]refusal   // topics that may not be read, by name
	surveyed time.Time            // when it was last checked whether the topics exist
}

// subscriber subscribes to a topic whose old subscription was removed.
type subscriber interface {
	subscribe(ctx context.Context, topic string)
}

// recovery is how far the search for a topic has come.
type recovery struct {
	next    time.Time // not before
	tries   int       // so that the pauses grow
	missed  int       // looks in a row that did not find it
	renewed bool      // it has another identity than the client knows
}

// refusal is a topic that may not be read.
type refusal struct{ since, last time.Time }

const (
	// declaredSince is how long a declared topic may be unknown to a broker without a notice.
	declaredSince = 5 * time.Second

	recoverFirst = time.Second // pauses between looks double from this
	recoverMost  = 15 * time.Second

	// missedEnough looks in a row make sure of a deletion: a broker that has just started
	// may not know a topic yet.
	missedEnough = 2

	deniedFor   = 2 * time.Second  // a node may learn of a permission later than others
	deniedApart = 30 * time.Second // or it was granted meanwhile
)

// denied notes that a topic may not be read; true if none of them may.
func (h *topicHealth) denied(topic string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.refused[topic]
	if now.Sub(r.last) > deniedApart {
		r.since = now
	}
	r.last = now
	if h.refused == nil {
		h.refused = map[string]refusal{}
	}
	h.refused[topic] = r
	return !h.src.cfg.Pattern && !slices.ContainsFunc(h.src.topics, func(t string) bool {
		r := h.refused[t]
		return now.Sub(r.since) < deniedFor || now.Sub(r.last) > deniedApart
	})
}

// markBroken notes a topic to be looked for.
func (h *topicHealth) markBroken(topic string) {
	h.mark(topic, recovery{next: time.Now().Add(recoverFirst)}, false)
}

// recreated notes topics that have another identity than the client knows.
func (h *topicHealth) recreated(topics []string) {
	for _, topic := range topics {
		h.mark(topic, recovery{next: time.Now(), renewed: true}, true)
	}
}

// mark begins the search for a topic. One that is looked for already keeps its pauses, unless
// there is a new reason.
func (h *topicHealth) mark(topic string, r recovery, restart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken == nil {
		h.broken = map[string]*recovery{}
	}
	if h.broken[topic] == nil || restart {
		h.broken[topic] = &r
	}
}

// isBroken reports whether the topic is looked for, which has its own notices.
func (h *topicHealth) isBroken(topic string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.broken[topic] != nil
}

// markHealthy ends the search and says so, outside the lock.
func (h *topicHealth) markHealthy(topic string) {
	h.mu.Lock()
	delete(h.broken, topic)
	h.mu.Unlock()
	h.reports.ended(conditionTopic(topic))
	h.reports.over(conditionTopic(topic), fmt.Sprintf("%s: topic %q exists again; resubscribed", h.src.title(), topic))
}

// surveySoon lets the next look ask for all topics.
func (h *topicHealth) surveySoon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.surveyed = time.Time{}
}

// look checks now and then whether the topics exist, and looks for those that are broken.
// answers says whether brokers answer at all.
func (h *topicHealth) look(answers bool) {
	h.survey(answers)
	now := time.Now()
	working := h.life.working()
	h.mu.Lock()
	due := map[string]bool{}
	for topic, r := range h.broken {
		if working && now.After(r.next) {
			due[topic] = r.renewed
			r.tries++
			r.next = now.Add(min(recoverMost, recoverFirst<<min(r.tries-1, 5)))
		}
	}
	h.mu.Unlock()
	for topic, renewed := range due {
		h.lookFor(topic, renewed)
	}
}

// survey asks for the topics. A group may have taken away the partitions of a deleted topic,
// so that no fetch could fail.
func (h *topicHealth) survey(answers bool) {
	working := h.life.working()
	h.mu.Lock()
	due := working && time.Since(h.surveyed) >= metadataAge && !h.src.cfg.Pattern
	if due {
		h.surveyed = time.Now()
	}
	h.mu.Unlock()
	if !due || !answers {
		return
	}
	ctx, cancel := context.WithTimeout(h.life.over, quietAfter)
	defer cancel()
	resp, err := cluster.Metadata(ctx, h.cl, h.src.topics...)
	if err != nil {
		return // asked again soon
	}
	h.recreated(h.topics.learn(resp))
	for _, t := range resp.Topics {
		if t.Topic != nil && t.ErrorCode == kerr.UnknownTopicOrPartition.Code {
			h.markBroken(*t.Topic)
		}
	}
}

// lookFor looks for a topic, and subscribes to one that was recreated.
func (h *topicHealth) lookFor(topic string, renewed bool) {
	ctx, cancel := context.WithTimeout(h.life.over, quietAfter)
	defer cancel()
	resp, err := cluster.Metadata(ctx, h.cl, topic)
	if err != nil || len(resp.Topics) == 0 {
		return
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			h.missed(topic)
		}
		return // still away
	}
	id := resp.Topics[0].TopicID
	if !renewed && id == h.topics.id(topic) && id != [16]byte{} && len(h.assignments.of(topic)) > 0 {
		h.mu.Lock()
		delete(h.broken, topic) // its notice is not repeated: it may be one that may not be read
		h.mu.Unlock()
		return
	}
	h.topics.setID(topic, id)
	h.abandon(topic)
	if h.life.leaving() {
		h.markHealthy(topic)
		return
	}
	h.cl.PurgeTopicsFromConsuming(topic)
	h.subscribe.subscribe(ctx, topic)
	h.markHealthy(topic)
}

// missed counts a look that did not find a topic. Without any topic the consumer ends, so
// that its container is not ready; without one of several the others are read on.
func (h *topicHealth) missed(topic string) {
	h.mu.Lock()
	r := h.broken[topic]
	if r == nil {
		h.mu.Unlock()
		return
	}
	r.missed++
	n := r.missed
	none := !h.src.cfg.Pattern && !slices.ContainsFunc(h.src.topics, func(t string) bool {
		return h.broken[t] == nil || h.broken[t].missed < missedEnough
	})
	h.mu.Unlock()
	if n < missedEnough {
		return
	}
	leaving := h.life.leaving()
	h.abandon(topic)
	err := &longshore.Error{Code: longshore.CodeNotFound, Op: "consume for " + h.src.title() + " at " + h.src.b.address(), Source: h.src.name(),
		Err: &wireError{text: fmt.Sprintf("topic %q was deleted", topic), kafka: kerr.UnknownTopicOrPartition}, Hint: "create it again, or set Declare"}
	switch {
	case leaving:
	case none:
		h.life.fail(err)
	case n == missedEnough:
		h.reports.ended(conditionTopic(topic)) // more is known of it than that it cannot be read
		h.reports.troubled(conditionTopic(topic), fmt.Sprintf("%s: topic %q was deleted; it is read again once it exists, and the other topics are read on", h.src.title(), topic), err)
	}
}

// abandon ends the partitions of a deleted topic.
func (h *topicHealth) abandon(topic string) {
	ps := h.assignments.of(topic)
	h.assignments.gate.enter()
	for _, p := range ps {
		p.mu.Lock()
		p.deleted = true
		p.mu.Unlock()
		p.release(&longshore.Error{Code: longshore.CodeLeaseLost, Op: "handle a record of " + p.key.String() + " for " + h.src.title(), Source: h.src.name(),
			Err: fmt.Errorf("its topic was deleted: %w", longshore.ErrLost), Hint: "nothing of it is committed; the record no longer exists"})
		p.reportUncommitted()
		h.src.starts.forget(p.key)
	}
	h.assignments.gate.leave()
	h.assignments.remove(ps)
}
