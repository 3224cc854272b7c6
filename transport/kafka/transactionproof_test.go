package kafka_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// Processes are killed while they commit, others come and go, and producers upstream abort
// transactions and leave one open: readers of committed records see the result of each record once
// and in order by key, and the positions never say anything else. F-C01, F-C02, F-C03, F-C04.
//
// LONGSHORE_TX_PROOF makes it 60,000 records, a kill every five seconds, a transaction that only
// the broker ends, and a broker that is restarted; see `make test-transactions`.
func TestTransactionsOfKilledProcesses(t *testing.T) {
	t.Parallel()
	p := proof{records: 6000, kills: 2, every: 1500 * time.Millisecond, open: time.Second}
	var addrs []string
	if os.Getenv("LONGSHORE_TX_PROOF") != "" {
		node := brokertest.FaultKafka(t)
		var one sync.Mutex
		p = proof{records: 60000, kills: 8, every: 5 * time.Second, restart: func() { one.Lock(); defer one.Unlock(); node.Restart() }}
		addrs = node.Addrs
	} else {
		addrs = brokertest.Kafka(t)
	}
	eachProtocol(t, func(t *testing.T, protocol kafka.Protocol) {
		p.run(t, realCluster(t, addrs, 6), protocol)
	})
}

// proof is how much is done, and what goes wrong.
type proof struct {
	records, kills int
	every          time.Duration // a process is killed
	open           time.Duration // how long a foreign transaction stays open; 0: until the broker ends it
	restart        func()        // of the broker, halfway; nil: it stays
}

func (p proof) run(t *testing.T, c *cluster, protocol kafka.Protocol) {
	out := c.withOut(6)
	in := &upstream{t: t, c: c, at: map[int32][]int64{}}
	in.start(p)
	running := map[int]func(){}
	for i := range 3 {
		running[i] = txChild(t, c, protocol, i)
	}
	defer func() {
		for _, kill := range running {
			kill()
		}
	}()
	for i := range p.kills {
		wait(p.every)
		in.agree(out)
		running[i%3]()
		running[i%3] = txChild(t, c, protocol, i%3)
		if more := running[3]; more != nil { // one that comes and goes
			more()
			delete(running, 3)
		} else {
			running[3] = txChild(t, c, protocol, 3)
		}
		if i == p.kills/2 && p.restart != nil {
			p.restart()
		}
	}
	in.wait()
	eventuallyIn(t, 4*time.Minute, func() string { return "all is committed; at " + in.positions() }, in.allCommitted)
	if !in.agree(out) {
		t.Error("positions and results could not be compared at the end")
	}
	if in.aborted.Load() == 0 {
		t.Error("no transaction upstream was aborted")
	}
	recs := c.results(out, p.records)
	if len(recs) != p.records {
		t.Errorf("%d results of %d records", len(recs), p.records)
	}
	once(t, recs, p.records)
}

// upstream writes numbered records, and transactions that come to nothing between them.
type upstream struct {
	t    *testing.T
	c    *cluster
	done sync.WaitGroup

	aborted atomic.Int64      // transactions
	mu      sync.Mutex        // guards at
	at      map[int32][]int64 // offsets of the numbered records, by partition
}

func (u *upstream) start(p proof) {
	ctx, cancel := context.WithCancel(context.Background())
	u.t.Cleanup(func() { cancel(); u.done.Wait() })
	u.done.Go(func() { u.number(ctx, p.records, time.Duration(p.kills)*p.every) })
	u.done.Go(func() { u.abort(ctx, 5*p.kills, p.every/5) })
	u.done.Go(func() { u.hang(ctx, p.open) })
}

func (u *upstream) wait() { u.done.Wait() }

// number produces the records, in so many steps of 100 ms.
func (u *upstream) number(ctx context.Context, records int, over time.Duration) {
	cl := u.client()
	defer cl.Close()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	step := max(1, records/max(1, int(over/(100*time.Millisecond))))
	for from := 0; from < records && ctx.Err() == nil; from += step {
		var recs []*kgo.Record
		for i := from; i < min(from+step, records); i++ {
			recs = append(recs, &kgo.Record{Key: fmt.Appendf(nil, "k%d", i%100), Value: fmt.Append(nil, i)})
		}
		if err := cl.ProduceSync(ctx, recs...).FirstErr(); err != nil {
			if ctx.Err() == nil {
				u.t.Errorf("producing: %v", err)
			}
			return
		}
		u.mu.Lock()
		for _, r := range recs {
			u.at[r.Partition] = append(u.at[r.Partition], r.Offset)
		}
		u.mu.Unlock()
		<-tick.C
	}
}

// abort writes transactions and aborts them. A broker that is restarted may refuse some.
func (u *upstream) abort(ctx context.Context, n int, every time.Duration) {
	cl := u.client(kgo.TransactionalID(u.c.topic + "-aborts"))
	defer cl.Close()
	for range n {
		if cl.BeginTransaction() == nil {
			for i := range 6 {
				_ = cl.ProduceSync(ctx, &kgo.Record{Key: fmt.Appendf(nil, "k%d", i), Value: []byte("aborted")})
			}
			if cl.EndTransaction(ctx, kgo.TryAbort) == nil {
				u.aborted.Add(1)
			}
		}
		wait(every)
	}
}

// hang leaves a transaction open.
func (u *upstream) hang(ctx context.Context, open time.Duration) {
	cl := u.client(kgo.TransactionalID(u.c.topic+"-hangs"), kgo.TransactionTimeout(5*time.Second))
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		u.t.Error(err)
		return
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Key: []byte("k1"), Value: []byte("hangs")}).FirstErr(); err != nil && ctx.Err() == nil {
		u.t.Error(err)
	}
	if open > 0 {
		wait(open)
		_ = cl.EndTransaction(ctx, kgo.TryAbort)
	}
}

func (u *upstream) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(u.c.addrs...), kgo.DefaultProduceTopic(u.c.topic))...)
	if err != nil {
		u.t.Error(err)
		panic(err)
	}
	return cl
}

// allCommitted reports whether no record is behind the group's positions.
func (u *upstream) allCommitted() bool {
	at, err := admin(u.t, u.c.addrs).FetchOffsets(kadm.RequireStable(context.Background()), u.c.topic)
	if err != nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for num, all := range u.at {
		if o, ok := at.Lookup(u.c.topic, num); len(all) > 0 && (!ok || o.Err != nil || o.At <= all[len(all)-1]) {
			return false
		}
	}
	return true
}

func (u *upstream) positions() string {
	at, err := admin(u.t, u.c.addrs).FetchOffsets(kadm.RequireStable(context.Background()), u.c.topic)
	u.mu.Lock()
	defer u.mu.Unlock()
	last := map[int32]int64{}
	for num, all := range u.at {
		last[num] = all[len(all)-1]
	}
	text := fmt.Sprint(err, " want ", last)
	at.Each(func(o kadm.OffsetResponse) { text += fmt.Sprint(" ", o.Partition, ":", o.At, " ", o.Err) })
	return text
}

// agree compares positions and results: what the positions describe has results, and what has
// results is described. The broker ends a transaction in each partition by itself, so that the one
// may show a moment before the other.
func (u *upstream) agree(out string) (compared bool) {
	u.t.Helper()
	adm, ctx := admin(u.t, u.c.addrs), context.Background()
	before, ok := u.stable()
	if !ok {
		return false // the group does not exist yet, or the broker is away
	}
	results, ok := u.written(out)
	after, ok2 := u.stable()
	meta, err := adm.Metadata(ctx, u.c.topic)
	if err != nil || !ok || !ok2 {
		return false
	}
	u.t.Logf("%d results compared with the positions", len(results))
	mark := offsets.MarkOf(meta.Cluster, meta.Topics[u.c.topic].ID, u.c.topic)
	missing := map[[2]int64]bool{}
	u.mu.Lock()
	for num, all := range u.at {
		was, _ := before.Lookup(u.c.topic, num)
		now, _ := after.Lookup(u.c.topic, num)
		saved, _ := offsets.Decode(now.Metadata, mark, now.At)
		for _, o := range all {
			switch k := [2]int64{int64(num), o}; {
			case o < was.At && !results[k]:
				missing[k] = true
			case results[k] && o >= now.At && !saved.Has(o, -1):
				u.t.Errorf("record %d of partition %d has a result, and position %d %q says nothing of it", o, num, now.At, now.Metadata)
			}
		}
	}
	u.mu.Unlock()
	for until := time.Now().Add(20 * time.Second); len(missing) > 0; {
		if results, ok := u.written(out); ok {
			maps.DeleteFunc(missing, func(k [2]int64, _ bool) bool { return results[k] })
			if len(missing) > 0 && time.Now().After(until) {
				u.t.Errorf("the positions are beyond %d records without a result: %v", len(missing), missing)
				return true
			}
		} else if time.Now().After(until) {
			return false // the broker is away
		}
	}
	return true
}

// stable are the group's positions once no transaction has any of them.
func (u *upstream) stable() (kadm.OffsetResponses, bool) {
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); wait(20 * time.Millisecond) {
		if all, err := admin(u.t, u.c.addrs).FetchOffsets(kadm.RequireStable(context.Background()), u.c.topic); err == nil && all.Ok() {
			return all, true
		}
	}
	return nil, false
}

// written are the records, by partition and offset, whose results are committed now.
func (u *upstream) written(out string) (from map[[2]int64]bool, ok bool) {
	ends, err := admin(u.t, u.c.addrs).ListCommittedOffsets(context.Background(), out)
	if err != nil || ends.Error() != nil {
		return nil, false
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(u.c.addrs...), kgo.ConsumeTopics(out), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		u.t.Error(err)
		return nil, false
	}
	defer cl.Close()
	from = map[[2]int64]bool{}
	left := ends.KOffsets()[out]
	for num, o := range left {
		if o.EpochOffset().Offset == 0 {
			delete(left, num)
		}
	}
	for len(left) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		recs := cl.PollFetches(ctx).Records()
		cancel()
		if len(recs) == 0 {
			return nil, false // an aborted transaction before the end shows nothing
		}
		for _, r := range recs {
			end, wanted := left[r.Partition]
			if !wanted {
				continue
			}
			if i := slices.IndexFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == "from" }); i >= 0 && r.Offset < end.EpochOffset().Offset {
				var k [2]int64
				if _, err := fmt.Sscan(string(r.Headers[i].Value), &k[0], &k[1]); err != nil {
					u.t.Error(strconv.Quote(string(r.Headers[i].Value)), err)
				}
				from[k] = true
			}
			if r.Offset >= end.EpochOffset().Offset-1 {
				delete(left, r.Partition)
			}
		}
	}
	return from, true
}
