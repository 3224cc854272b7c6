package kafka

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
	"github.com/longshore-go/longshore/transport/kafka/internal/txn"
)

// doneBehind is a partition whose first record is not done, and whose second and third are: a
// position without metadata describes neither.
func doneBehind(box *outbox) *partition {
	with := &surroundings{src: &Group{}, box: box, settled: &settlements{urgent: make(chan struct{}, 1)}}
	p := &partition{with: with, token: &assignmentToken{}, t: offsets.New(0, 0), ledger: ledger{at: -1}, outputs: outputs{box: box}}
	for i := range int64(3) {
		seq := p.t.Add(i, 0, nil)
		if i > 0 {
			p.outputs.done = append(p.outputs.done, &output{offset: i, bytes: 40})
			box.done += 40
			p.t.Ack(seq)
		}
	}
	return p
}

func newOutbox(limit int64) *outbox {
	return &outbox{limit: limit, urgent: make(chan struct{}, 1), changed: make(chan struct{})}
}

// After a seek that failed, records which the position does not describe are handled again. What
// they have published is not written as well.
func TestSeekThatFailsLeavesNoOutputTwice(t *testing.T) {
	t.Parallel()
	box := newOutbox(100)
	p := doneBehind(box)
	n := p.continued()
	p.supersede()
	if len(n.outputs.done) != 0 || box.done != 0 {
		t.Errorf("%d outputs, and %d bytes in the account, of records that are handled again", len(n.outputs.done), box.done)
	}
}

// A commit that cannot describe what is done makes no room: a Publish that waited for it is told,
// also one that began before, and the record whose turn it is can finish.
func TestOutboxThatNoCommitEmptiesIsNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := newOutbox(100)
		p := doneBehind(box)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waits := make(chan error, 1)
		go func() { waits <- box.reserve(ctx, 30, "out") }()
		synctest.Wait()
		one := p.uncommitted()
		p.committed(one, nil)
		if err := <-waits; !errors.Is(err, longshore.CodeBlocked) {
			t.Errorf("one that waited: %v", err)
		}
		if err := box.reserve(ctx, 30, "out"); !errors.Is(err, longshore.CodeBlocked) {
			t.Errorf("one that came later: %v", err)
		}
		p.mu.Lock()
		p.t.Ack(0)
		p.mu.Unlock()
		p.committed(p.uncommitted(), nil)
		if err := box.reserve(ctx, 100, "out"); err != nil || box.left != 0 || box.done != 0 {
			t.Errorf("after the first record: %v, %d done, %d of them left", err, box.done, box.left)
		}
	})
}

// A topic that was deleted, and whose results no transaction takes: a Publish that waits for their
// room is told, the other partitions go without it, and their room comes back with the partition's
// end.
func TestOutboxOfADeletedTopicIsNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := newOutbox(100)
		p := doneBehind(box)
		p.t.Ack(0) // all are done
		p.with.reports = newReports(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waits := make(chan error, 1)
		go func() { waits <- box.reserve(ctx, 30, "out") }()
		synctest.Wait()
		p.committed(p.uncommitted(), kerr.NotCoordinator)
		synctest.Wait()
		select {
		case err := <-waits:
			t.Fatalf("after an error that passes: %v", err)
		default:
		}
		p.committed(p.uncommitted(), kerr.UnknownTopicOrPartition)
		if err := <-waits; !errors.Is(err, longshore.CodeBlocked) {
			t.Errorf("after the refusal: %v", err)
		}
		tx := &transactions{refused: map[tp]bool{p.key.tp(): true}}
		batch := map[tp]*pending{p.key.tp(): p.uncommitted(), {Topic: "b"}: {}, {Topic: "c"}: {}}
		if all := parts(batch, tx.apart); len(all) != 2 || len(all[1]) != 1 || all[1][p.key.tp()] == nil {
			t.Errorf("%v, want the refused partition by itself at the end", all)
		}
		gone := &committer{assignments: &assignments{}, tx: tx} // nothing is assigned
		if batch, more := gone.collect([]*partition{p}); len(batch)+len(more) > 0 || box.left != 80 {
			t.Errorf("%d in a commit, %d bytes left out, want none and 80", len(batch), box.left)
		}
		p.reportUncommitted()
		if err := box.reserve(ctx, 100, "out"); err != nil || box.left != 0 {
			t.Errorf("after its end: %v, %d left", err, box.left)
		}
	})
}

// What handlers have published from one partition in an outage goes in several transactions, each
// with a position that describes its part.
func TestResultsOfOnePartitionGoInPieces(t *testing.T) {
	t.Parallel()
	for _, stuck := range []bool{false, true} {
		box := newOutbox(1 << 30)
		p := doneBehind(box)
		p.outputs.forget()
		p.ledger.budget = offsets.DefaultBudget
		for i := int64(1); i < 40; i++ {
			if i > 2 {
				p.t.Ack(p.t.Add(i, 0, nil))
			}
			p.outputs.done = append(p.outputs.done, &output{offset: i, bytes: 1 << 20})
			box.done += 1 << 20
		}
		if !stuck {
			p.t.Ack(0)
		}
		at, written, n := int64(-1), 0, 0
		for one := p.uncommitted(); one != nil; one = p.uncommitted() {
			if bytes := weigh(one.outputs); bytes > transactionBytes {
				t.Fatalf("%d bytes in one transaction", bytes)
			}
			saved, _ := offsets.Decode(one.s.Saved, p.mark, one.s.Offset)
			for _, o := range one.outputs {
				if o.offset != int64(written+1) || o.offset >= one.s.Offset && !saved.Has(o.offset, 0) {
					t.Fatalf("result %d after %d, with position %d %q", o.offset, written, one.s.Offset, one.s.Saved)
				}
				written++
			}
			if written < 39 && (one.s.Offset > int64(written+1) || saved.Has(int64(written+1), 0)) {
				t.Fatalf("position %d %q describes what comes after %d", one.s.Offset, one.s.Saved, written)
			}
			if one.s.Offset < at || stuck && one.s.Offset != 0 {
				t.Fatalf("position %d after %d", one.s.Offset, at)
			}
			at, n = one.s.Offset, n+1
			p.committed(one, nil)
		}
		if written != 39 || n != 5 || box.done != 0 {
			t.Errorf("%d results in %d transactions, %d bytes left; want 39 in 5", written, n, box.done)
		}
	}
}

// A commit that does not end holds up neither leaving the group nor the close.
func TestCloseOfTransactionsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &committer{tx: &transactions{producer: &txn.Producer{}}, turn: make(chan struct{}, 1)}
		c.turn <- struct{}{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		c.close(ctx)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
		<-c.turn
		synctest.Wait() // it ends once the commit has
	})
}

// One look names some of many transactions, and the next looks the others.
func TestOpenTransactionsAreNamedInTurns(t *testing.T) {
	t.Parallel()
	f, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(20, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var mu sync.Mutex
	asked := map[int32]bool{}
	f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeProducers}, Observe: true, Count: -1, When: func(r kmsg.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		asked[r.(*kmsg.DescribeProducersRequest).Topics[0].Partitions[0]] = true //nolint:errcheck // by the key
		return true
	}})
	cl, err := kgo.NewClient(kgo.SeedBrokers(f.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	o := &openTransactions{src: &Group{group: "g"}, cl: cl, reports: newReports(nil)}
	for i, want := range []int{8, 16, 20, 20} {
		held := map[tp]*heldBack{}
		for num := range int32(20) {
			held[tp{Topic: "orders", Num: num}] = &heldBack{stableAt: stableAt{offset: 1}, behind: 1}
		}
		o.keep(t.Context(), held)
		mu.Lock()
		n := len(asked)
		mu.Unlock()
		if n != want {
			t.Errorf("%d partitions looked up after look %d, want %d", n, i+1, want)
		}
		for _, b := range o.blocked() {
			if b.Cause == "" {
				t.Errorf("%s/%d without a cause", b.Topic, b.Partition)
			}
		}
	}
}
