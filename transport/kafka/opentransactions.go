package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// A consumer that reads committed records waits at the first record of an open transaction (the
// last stable offset). If a producer leaves one open, nothing arrives, and nothing seems to wait.

// openLooks is how often partitions are looked at of which nothing arrives, and so how long a
// transaction is open at least before it is reported.
const openLooks = 10 * time.Second

// openNamed is how many transactions are looked up in one look: each takes several requests. The
// next look names others.
const openNamed = 8

// openUnnamed is said of a transaction that was not looked up yet.
const openUnnamed = "a transaction is open there"

// openTransactions notices partitions that wait for a transaction of another producer.
type openTransactions struct {
	src     *Group      // names, and whether only committed records are read
	cl      *kgo.Client // asks
	reports *reports    // takes what is found

	looked time.Time       // the last look; the watcher's own
	seen   map[tp]stableAt // what the last look found; the watcher's own

	mu   sync.Mutex       // guards held
	held map[tp]*heldBack // partitions whose stable end did not move since the look before
}

// stableAt is where a partition's committed records end.
type stableAt struct {
	offset int64     // the last stable offset
	since  time.Time // when it was first seen there, with records behind it
}

// heldBack is a partition that waits for a transaction.
type heldBack struct {
	stableAt
	behind int64  // offsets behind it
	cause  string // the transaction, for people
}

// look compares the ends of quiet partitions for all readers and for those of committed records.
func (o *openTransactions) look(ctx context.Context, ps []*partition, now time.Time) {
	if !o.src.committedOnly() || now.Sub(o.looked) < openLooks {
		return
	}
	o.looked = now
	ask := map[string][]int32{}
	for _, p := range ps {
		if p.quiet() {
			ask[p.key.topic] = append(ask[p.key.topic], p.key.num)
		}
	}
	found := map[tp]stableAt{}
	held := map[tp]*heldBack{}
	ctx, cancel := context.WithTimeout(ctx, quietAfter) // the watcher has other things to look at
	defer cancel()
	if len(ask) > 0 {
		waiting, err := behindStable(ctx, o.cl, ask)
		if err != nil {
			return
		}
		for k, w := range waiting {
			one := stableAt{w.offset, now}
			if before, ok := o.seen[k]; ok && before.offset == w.offset {
				one = before
				held[k] = &heldBack{stableAt: one, behind: w.behind}
			}
			found[k] = one
		}
	}
	o.seen = found
	o.keep(ctx, held)
}

// keep replaces what is held back, and reports what begins and what is over.
func (o *openTransactions) keep(ctx context.Context, held map[tp]*heldBack) {
	o.mu.Lock()
	before := o.held
	o.mu.Unlock()
	asked := 0
	for k, h := range held {
		if old := before[k]; old != nil && old.offset == h.offset && old.cause != "" {
			h.cause = old.cause
		} else if asked < openNamed && ctx.Err() == nil {
			asked++
			if cause, _ := openTransaction(ctx, o.cl, k); ctx.Err() == nil { // otherwise the next look asks again
				h.cause = cause
			}
		}
		o.reports.troubled("transaction "+partitionName(k), fmt.Sprintf("%s: %s is not read beyond offset %d, with %d offsets behind it: %s; %s",
			o.src.title(), partitionName(k), h.offset, h.behind, or(h.cause, openUnnamed), ending(k, h.offset)), nil)
	}
	for k := range before {
		if held[k] == nil {
			o.reports.over("transaction "+partitionName(k), fmt.Sprintf("%s: %s is read again: the open transaction has ended", o.src.title(), partitionName(k)))
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held = held
}

// blocked lists the partitions that wait for a transaction.
func (o *openTransactions) blocked() (list []transport.BlockedPartition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, h := range o.held {
		list = append(list, transport.BlockedPartition{Topic: k.Topic, Partition: k.Num, Position: uint64(h.offset), Since: h.since, //nolint:gosec // not negative
			Behind: int(h.behind), Cause: or(h.cause, openUnnamed), Do: ending(k, h.offset)})
	}
	return list
}

// ending is what ends the transaction that begins at an offset.
func ending(k tp, offset int64) string {
	return fmt.Sprintf("end it with its producer, or with kafka-transactions.sh abort --topic %s --partition %d --start-offset %d", k.Topic, k.Num, offset)
}

// behind is how many offsets wait for transactions.
func (o *openTransactions) behind() (sum int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.held {
		sum += h.behind
	}
	return sum
}

// openTransaction describes the oldest open transaction of a partition, as far as the broker says.
func openTransaction(ctx context.Context, cl *kgo.Client, at tp) (text string, since time.Time) {
	adm := kadm.NewClient(cl)
	set := kadm.TopicsSet{}
	set.Add(at.Topic, at.Num)
	topics, err := adm.DescribeProducers(ctx, set)
	if err != nil {
		return "a transaction is open there (its producer cannot be read: " + err.Error() + ")", since
	}
	var open []kadm.DescribedProducer
	topics.EachProducer(func(p kadm.DescribedProducer) {
		if p.CurrentTxnStartOffset >= 0 {
			open = append(open, p)
		}
	})
	if len(open) == 0 {
		return openUnnamed, since
	}
	first := slices.MinFunc(open, func(a, b kadm.DescribedProducer) int { return int(a.CurrentTxnStartOffset - b.CurrentTxnStartOffset) })
	since = time.UnixMilli(first.LastTimestamp)
	name := ""
	if listed, err := adm.ListTransactions(ctx, []int64{first.ProducerID}, nil); err == nil && len(listed) > 0 {
		for id := range listed {
			name = fmt.Sprintf(" (transactional id %.64q)", id)
			if described, err := adm.DescribeTransactions(ctx, id); err == nil && described[id].StartTimestamp > 0 {
				since = time.UnixMilli(described[id].StartTimestamp)
			}
		}
	}
	return fmt.Sprintf("a transaction of producer %d%s is open since %s", first.ProducerID, name, since.UTC().Format(time.RFC3339)), since
}

func partitionName(k tp) string { return fmt.Sprintf("%s/%d", k.Topic, k.Num) }

// quiet reports whether nothing of the partition waits here.
func (p *partition) quiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == assigned && p.buf.empty()
}

// openTransactionsOf names the transactions that hold up readers of topics, for tools: those whose
// partitions have records behind the stable end, and that are open for long.
func openTransactionsOf(ctx context.Context, cl *kgo.Client, nums map[string][]int32, now time.Time) (string, error) {
	waiting, err := behindStable(ctx, cl, nums)
	if err != nil {
		return "", err
	}
	var all []string
	for k, w := range waiting {
		if text, since := openTransaction(ctx, cl, k); now.Sub(since) >= openLooks {
			all = append(all, fmt.Sprintf("%s at offset %d, %d behind it: %s", partitionName(k), w.offset, w.behind, text))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; "), nil
}

// unstable is what readers of committed records do not get yet.
type unstable struct {
	offset int64 // the last stable one
	behind int64 // offsets behind it
}

// behindStable finds partitions that have records behind their stable ends.
func behindStable(ctx context.Context, cl *kgo.Client, nums map[string][]int32) (map[tp]unstable, error) {
	stable, err := cluster.ListOffsets(ctx, cl, nums, cluster.Newest, true)
	if err != nil {
		return nil, err
	}
	ends, err := cluster.ListOffsets(ctx, cl, nums, cluster.Newest, false)
	if err != nil {
		return nil, err
	}
	found := map[tp]unstable{}
	for k, at := range stable {
		if behind := ends[k] - at; behind > 0 {
			found[k] = unstable{at, behind}
		}
	}
	return found, nil
}
