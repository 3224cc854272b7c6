package kafka

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// commitRead is what the group had for a partition.
type commitRead struct {
	id     [16]byte // of the topic, where the answer tells it
	offset int64
	epoch  int32
	saved  string
}

// topicRead is a topic as an answer names it: from version 10 on by its id, and the
// name is empty as long as the client has not learnt it.
type topicRead struct {
	name string
	id   [16]byte
}

// fetched keeps what was committed, with the text beside it, for assign, which the
// client calls next.
func (c *consumer) fetched(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	read := map[topicRead]map[int32]commitRead{}
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			parts := map[int32]commitRead{}
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 || p.Offset < 0 {
					continue
				}
				r := commitRead{id: t.TopicID, offset: p.Offset, epoch: p.LeaderEpoch}
				if p.Metadata != nil {
					r.saved = *p.Metadata
				}
				parts[p.Partition] = r
			}
			if t.Topic == "" {
				read[topicRead{id: t.TopicID}] = parts
			} else {
				read[topicRead{name: t.Topic}] = parts
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = read
	return nil
}

// assign decides where each new partition starts, and makes its state. No record
// of it is fetched before it returns.
func (c *consumer) assign(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	select {
	case <-c.begun: // the client of a pattern joins as soon as it is made, while the opening still looks
	case <-c.over.Done():
		return nil, longshore.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	nums := map[string][]int32{}
	for topic, parts := range offsets {
		for num := range parts {
			nums[topic] = append(nums[topic], num)
		}
	}
	logs, err := c.measure(ctx, nums)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	read := c.read
	c.mu.Unlock()
	var made []*partition
	for topic, parts := range offsets {
		for num := range parts {
			key := partitionOf{topic, c.topicID(topic), num}
			r, committed := committedAt(read, key, offsets[topic][num])
			if committed && c.fromOtherTopic(key, r) {
				r, committed = commitRead{}, false
			}
			p, err := c.begin(ctx, key, r, committed, logs[tp{topic, num}])
			if err != nil {
				return nil, err
			}
			made = append(made, p)
			if offsets[topic][num] = c.somewhere(key); p.t.Base() >= 0 {
				offsets[topic][num] = kgo.NewOffset().At(p.t.Base()).WithEpoch(p.t.Epoch())
			}
		}
	}
	c.install(made)
	return offsets, nil
}

// committedAt is what the group had for a partition. Where the answer cannot be found
// by the topic's name or id, the client's own reading of it counts: without what is
// saved beside the position records are repeated, without the position the whole
// partition would be.
func committedAt(read map[topicRead]map[int32]commitRead, key partitionOf, client kgo.Offset) (commitRead, bool) {
	for _, t := range []topicRead{{name: key.topic}, {id: key.id}} {
		if r, ok := read[t][key.num]; ok {
			return r, true
		}
	}
	if o := client.EpochOffset(); o.Offset >= 0 {
		return commitRead{offset: o.Offset, epoch: o.Epoch}, true
	}
	return commitRead{}, false
}

// install puts new partitions in their places.
func (c *consumer) install(made []*partition) {
	c.gate.enter()
	defer c.gate.leave()
	for _, p := range made {
		k := tp{p.key.topic, p.key.num}
		c.mu.Lock()
		old := c.parts[k]
		if c.closed || c.canceled || c.end != nil {
			p.leaving = true // nothing of it is handed out
		}
		c.parts[k] = p
		c.mu.Unlock()
		if old != nil { // an assignment that was repeated before it began
			old.close(c.taken(old.key, "it was assigned anew"))
			c.forfeit(old)
		}
	}
	signal(c.urgent) // a position that was not committed before
	signal(c.needsData)
}

// begin makes the state of a new assignment.
func (c *consumer) begin(ctx context.Context, key partitionOf, r commitRead, committed bool, log extent) (*partition, error) {
	c.src.starts.read(key.topic, key.id)
	if committed {
		if at, gone, err := c.inRange(key, r.offset, log); err != nil {
			return nil, err
		} else if gone {
			p := newPartition(c, key, at, -1)
			if r.offset < log.start { // its head was deleted: what was done behind that still is
				p.inherit(r.saved, r.offset)
			}
			p.t.Touch()
			return p, nil
		}
		p := newPartition(c, key, r.offset, r.epoch)
		p.inherit(r.saved, r.offset)
		p.sent = r.offset
		return p, nil
	}
	at, known := c.src.starts.get(key)
	if known {
		if moved, gone, err := c.inRange(key, at, log); err != nil {
			return nil, err
		} else if gone {
			at = moved
		}
	} else {
		var err error
		if at, err = c.startOf(ctx, key, log); err != nil {
			return nil, err
		}
		if at < 0 { // its leader is away: it is found when the first records come
			return newPartition(c, key, -1, -1), nil
		}
		c.src.starts.set(key, at)
	}
	p := newPartition(c, key, at, -1)
	p.t.Touch() // commit it, so that a partition without records has a position too
	return p, nil
}

// inRange compares a position with the log. gone: it is not in it, go on at the
// other one.
func (c *consumer) inRange(key partitionOf, position int64, log extent) (at int64, gone bool, err error) {
	if !log.known {
		return position, false, nil // the fetch will tell
	}
	var gap string
	reason := transport.SkippedExpired
	switch {
	case position < log.start:
		gap = fmt.Sprintf("%d offsets were deleted before they were read", log.start-position)
	case position > log.end:
		gap, reason = fmt.Sprintf("it lies %d offsets beyond the end", position-log.end), transport.SkippedTruncated
	default:
		return position, false, nil
	}
	at = log.start
	policy := "at the oldest record"
	switch c.src.cfg.OutOfRange {
	case ToEarliest:
	case ToLatest:
		at, policy = log.end, "at the end"
	case Fail:
		err := &longshore.Error{Code: longshore.CodeRefused, Op: "read " + key.String() + " for " + c.src.title(), Source: c.src.name(),
			Err:  fmt.Errorf("position %d is not in the log (%d to %d): %s", position, log.start, log.end, gap),
			Hint: "set the group's offset by hand, or OutOfRange to ToEarliest or ToLatest"}
		c.fail(err)
		return 0, false, err
	}
	c.tell.event(transport.Event{Kind: transport.EventSkipped, Skipped: reason,
		Text: fmt.Sprintf("%s: position %d of %s is not in the log (%d to %d): %s; reading on %s, offset %d", c.src.title(), position, key, log.start, log.end, gap, policy, at)})
	return at, true, nil
}

// somewhere is where the client begins to read a partition that nobody could tell of.
func (c *consumer) somewhere(key partitionOf) kgo.Offset {
	switch {
	case c.src.cfg.Start == Earliest, c.src.starts.came(key):
		return kgo.NewOffset().AtStart()
	case c.src.cfg.Start == Latest:
		return kgo.NewOffset().AtEnd()
	}
	return kgo.NewOffset().AfterMilli(int64(c.src.cfg.Start))
}

// startOf is where to begin without a position; -1 if the log cannot be asked, which
// must not hold up the others. What is in a topic that was made anew, or in partitions
// that were added, came while it was read.
func (c *consumer) startOf(ctx context.Context, key partitionOf, log extent) (int64, error) {
	switch {
	case !log.known:
		return -1, nil
	case c.src.cfg.Start == Earliest, c.src.starts.came(key):
		return log.start, nil
	case c.src.cfg.Start == Latest:
		return log.end, nil
	}
	found, err := c.listOffsets(ctx, map[string][]int32{key.topic: {key.num}}, int64(c.src.cfg.Start))
	if err != nil {
		return 0, err
	}
	switch at, ok := found[tp{key.topic, key.num}]; {
	case !ok: // its leader has gone silent meanwhile
		return -1, nil
	case at >= 0:
		return at, nil
	}
	return log.end, nil // all records are older
}

func (c *consumer) topicID(topic string) [16]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[topic]
}

// subscription is what deliveries of one incarnation of a topic have in common.
func (c *consumer) subscription(key partitionOf) *longshore.Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := base64.RawURLEncoding.EncodeToString(key.id[:])
	if key.id == [16]byte{} {
		id = key.topic
	}
	prefix := "k." + c.facts.id + "." + id + "."
	if s := c.subs[prefix]; s != nil {
		return s
	}
	s := &longshore.Subscription{Transport: "kafka", Source: c.src.name(), Group: c.src.group,
		Identify: func(d *longshore.Delivery) string {
			return prefix + strconv.Itoa(int(d.Origin.Partition)) + "." + strconv.FormatUint(d.Origin.Position, 10)
		}}
	c.subs[prefix] = s
	return s
}
