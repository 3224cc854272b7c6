package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Browse reads up to n records without a group, all partitions of the first topic
// one after the other from the oldest record on. from is "" or what the last call
// returned as next: "partition:offset".
func (s *groupSource) Browse(ctx context.Context, from string, n int) ([]*longshore.Delivery, string, error) {
	if err := s.Check(); err != nil {
		return nil, "", err
	}
	num, at, err := parseMark(from)
	if err != nil {
		return nil, "", err
	}
	b := &browser{src: s, n: max(n, 1)}
	ds, next, err := b.read(ctx, num, at)
	return ds, next, s.b.opened("browse "+s.title()+" at "+s.b.address(), s.name(), err)
}

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
	src *groupSource
	n   int
	c   *consumer // only to ask with
}

func (b *browser) read(ctx context.Context, num int32, at int64) (ds []*longshore.Delivery, next string, err error) {
	cl, err := kgo.NewClient(b.src.consuming()...)
	if err != nil {
		return nil, "", badConfig("Options", firstLine(err.Error()), "")
	}
	defer cl.Close()
	b.c = newConsumer(b.src, transport.OpenOptions{})
	defer b.c.halt()
	defer b.c.finish()
	b.c.cl = cl
	found, err := b.src.look(ctx, cl)
	if err != nil {
		return nil, "", err
	}
	b.c.facts = found
	topic := b.src.topics[0]
	if len(found.missing) > 0 {
		return nil, "", b.src.notFound(ctx, cl, found.missing)
	}
	b.c.ids[topic] = found.topics[topic].id
	var nums []int32
	for i := range found.topics[topic].partitions {
		nums = append(nums, int32(i)) //nolint:gosec // the number of partitions
	}
	logs, err := b.c.measure(ctx, map[string][]int32{topic: nums})
	if err != nil {
		return nil, "", err
	}
	for _, num := range slices.DeleteFunc(nums, func(i int32) bool { return i < num }) {
		log := logs[tp{topic, num}]
		at = max(at, log.start)
		if at < log.end {
			got, reached, err := b.partition(ctx, partitionOf{topic, b.c.topicID(topic), num}, at, log.end, b.n-len(ds))
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
	cl := b.c.cl
	where := map[string]map[int32]kgo.Offset{key.topic: {key.num: kgo.NewOffset().At(at)}}
	cl.AddConsumePartitions(maps.Clone(where))
	defer cl.RemoveConsumePartitions(map[string][]int32{key.topic: {key.num}})
	p := newPartition(b.c, key, at, -1)
	p.closed = true // nothing of it can be settled
	for at < end && len(ds) < n {
		wait, cancel := context.WithTimeout(ctx, browseWait)
		fs := cl.PollRecords(wait, n-len(ds))
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
		fs.EachRecord(func(r *kgo.Record) {
			if r.Offset < at || r.Partition != key.num {
				return
			}
			at = r.Offset + 1
			if !r.Attrs.IsControl() && len(ds) < n {
				ds = append(ds, p.delivery(r, 0, 1, time.Now()))
			}
		})
	}
	return ds, at, nil
}
