package kafka

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// Browse reads up to n records without a group, all partitions of the first topic
// one after the other from the oldest record on. from is "" or what the last call
// returned as next: "partition:offset".
func (s *Group) Browse(ctx context.Context, from string, n int) ([]*longshore.Delivery, string, error) {
	if err := s.Check(); err != nil {
		return nil, "", err
	}
	num, at, err := parseMark(from)
	if err != nil {
		return nil, "", err
	}
	cl, err := kgo.NewClient(s.consuming()...)
	if err != nil {
		return nil, "", badOptions(err)
	}
	defer cl.Close()
	b := &browser{src: s, cl: cl, topics: newTopics(s), n: max(n, 1)}
	ds, next, err := b.read(ctx, num, at)
	return ds, next, s.b.opened("browse "+s.title()+" at "+s.b.address(), s.name(), err)
}

// parseMark reads where a look goes on: a partition and an offset in it.
func parseMark(from string) (num int32, at int64, err error) {
	if from == "" {
		return 0, -1, nil
	}
	p, o, _ := strings.Cut(from, ":")
	n, err1 := strconv.ParseInt(p, 10, 32)
	at, err2 := strconv.ParseInt(o, 10, 64)
	if err1 != nil || err2 != nil || n < 0 || at < 0 {
		return 0, 0, badConfig("browse", fmt.Sprintf("%.40q is not a place to go on at", from), `give "" or what was returned as next`)
	}
	return int32(n), at, nil
}

// browseWait is how long a partition may bring nothing although its end is not
// reached.
const browseWait = 3 * time.Second

// browser is one Browse.
type browser struct {
	src    *Group      // the topics, and the key of their messages
	cl     *kgo.Client // its own: a look must not move a group
	topics *topics     // makes the deliveries' identities
	n      int         // records wanted
}

// read goes over the partitions from a position on, the lowest partition first. Each begins at
// the start of its log: what retention has removed is no gap to be reported here.
func (b *browser) read(ctx context.Context, num int32, at int64) (ds []*longshore.Delivery, next string, err error) {
	found, err := b.src.look(ctx, b.cl)
	if err != nil {
		return nil, "", err
	}
	b.topics.adopt(found)
	topic := b.src.topics[0]
	if len(found.missing) > 0 {
		return nil, "", b.src.notFound(ctx, b.cl, found.missing)
	}
	var nums []int32
	for i := range found.topics[topic].partitions {
		nums = append(nums, int32(i)) //nolint:gosec // the number of partitions
	}
	logs, err := cluster.Extents(ctx, b.cl, map[string][]int32{topic: nums}, b.src.committedOnly())
	if err != nil {
		return nil, "", err
	}
	for _, num := range slices.DeleteFunc(nums, func(i int32) bool { return i < num }) {
		log := logs[tp{Topic: topic, Num: num}]
		at = max(at, log.Start)
		if at < log.End {
			got, reached, err := b.partition(ctx, b.topics.key(tp{Topic: topic, Num: num}), at, log.End, b.n-len(ds))
			if err != nil {
				return nil, "", err
			}
			ds, at = append(ds, got...), reached
		}
		if len(ds) >= b.n {
			return ds, fmt.Sprintf("%d:%d", num, at), nil
		}
		at = -1
	}
	return ds, "", nil
}

// partition reads one partition up to the end that it had at the beginning.
func (b *browser) partition(ctx context.Context, key partitionOf, at, end int64, n int) (ds []*longshore.Delivery, reached int64, err error) {
	where := map[string]map[int32]kgo.Offset{key.topic: {key.num: kgo.NewOffset().At(at)}}
	b.cl.AddConsumePartitions(where)
	defer b.cl.RemoveConsumePartitions(map[string][]int32{key.topic: {key.num}})
	over := newPartition(&surroundings{src: b.src}, b.topics, key, at, -1)
	over.state = released // nothing of it can be settled
	for at < end && len(ds) < n {
		wait, cancel := context.WithTimeout(ctx, browseWait)
		fs := b.cl.PollRecords(wait, n-len(ds))
		silent := wait.Err() != nil
		cancel()
		if err := ctx.Err(); err != nil {
			return nil, at, err
		}
		if silent && fs.Empty() {
			return ds, end, nil // what is left was deleted
		}
		for _, e := range fs.Errors() {
			return nil, at, e.Err
		}
		fs.EachRecord(func(r *kgo.Record) { //nolint:contextcheck // nothing in it waits
			if r.Offset < at || r.Partition != key.num {
				return
			}
			at = r.Offset + 1
			if !r.Attrs.IsControl() && len(ds) < n {
				d := longshore.NewDelivery(context.Background(), over, 0)
				fill(d, over.sub, r, 1, time.Now())
				ds = append(ds, d)
			}
		})
	}
	return ds, at, nil
}
