package share_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore/transport/kafka/internal/share"
)

const patience = 20 * time.Second

// fake is an embedded cluster whose share groups begin at the first record.
func fake(t *testing.T, brokers int, partitions int32) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(brokers), kfake.SeedTopics(partitions, "orders"), kfake.BrokerConfigs(map[string]string{
		"group.share.heartbeat.interval.ms": "200", "group.share.record.lock.duration.ms": "2000", "share.record.lock.sweep.interval.ms": "100"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.SetGroupConfigs("billing", map[string]string{"share.auto.offset.reset": "earliest"})
	return c
}

func client(t *testing.T, c *kfake.Cluster) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func produce(t *testing.T, cl *kgo.Client, n int) {
	t.Helper()
	for i := range n {
		cl.Produce(t.Context(), &kgo.Record{Topic: "orders", Value: fmt.Appendf(nil, "%d", i), Key: fmt.Appendf(nil, "%d", i)}, nil)
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// ear records what a member reports.
type ear struct {
	mu      sync.Mutex
	arrived []*share.Record
	lost    []*share.Record
	failed  int
	down    error
}

func (e *ear) Arrived(rs []*share.Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.arrived = append(e.arrived, rs...)
}

func (e *ear) Lost(rs []*share.Record, _ error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost = append(e.lost, rs...)
}

func (e *ear) Failed(*share.Record, share.Verdict, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed++
}

func (e *ear) Down(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = why
}

func (*ear) Undecodable(string, int32, int, error) {}
func (*ear) Troubled(string, error)                {}
func (*ear) Recovered(string)                      {}

// take returns what has arrived and was not taken before.
func (e *ear) take() []*share.Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	rs := e.arrived
	e.arrived = nil
	return rs
}

func (e *ear) counts() (lost, failed int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.lost), e.failed
}

// member joins and is closed with the test.
func member(t *testing.T, cl *kgo.Client) (*share.Member, *ear) {
	t.Helper()
	e := &ear{}
	m := share.Join(share.Config{Client: cl, Group: "billing", Topics: []string{"orders"}, Events: e,
		Unpack: kgo.DefaultDecompressor(), Linger: 5 * time.Millisecond})
	t.Cleanup(func() { shut(t, m) })
	return m, e
}

func shut(t *testing.T, m *share.Member) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m.Close(ctx)
	if ctx.Err() != nil {
		t.Error("Close took too long")
	}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not seen within %s: %s", patience, what)
		}
	}
}

// collect waits for n records.
func collect(t *testing.T, m *share.Member, e *ear, n int) (rs []*share.Record) {
	t.Helper()
	m.Want(n)
	eventually(t, fmt.Sprintf("%d records", n), func() bool {
		got := e.take()
		rs = append(rs, got...)
		if len(got) > 0 && len(rs) < n {
			m.Want(n - len(rs))
		}
		return len(rs) >= n
	})
	return rs
}

// filled is a cluster whose topic has one partition and n records.
func filled(t *testing.T, brokers, n int) (*kfake.Cluster, *kgo.Client) {
	t.Helper()
	c := fake(t, brokers, 1)
	cl := client(t, c)
	produce(t, cl, n)
	return c, cl
}

func settle(t *testing.T, m *share.Member, v share.Verdict, rs ...*share.Record) {
	t.Helper()
	for _, r := range rs {
		if err := m.Settle(r.Token, v, nil); err != nil {
			t.Errorf("settle offset %d: %v", r.Offset, err)
		}
	}
}

func flush(t *testing.T, m *share.Member) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := m.Flush(ctx); err != nil {
		t.Error(err)
	}
}

// Two members share partitions of three brokers. Each record arrives, is accepted once, and
// does not come again.
func TestMembersShareARecordEach(t *testing.T) {
	c := fake(t, 3, 6)
	cl := client(t, c)
	produce(t, cl, 3000)
	a, ea := member(t, cl)
	b, eb := member(t, client(t, c))
	seen := map[string]int{}
	eventually(t, "all records", func() bool {
		for m, e := range map[*share.Member]*ear{a: ea, b: eb} {
			rs := e.take()
			for _, r := range rs {
				seen[string(r.Value)]++
			}
			settle(t, m, share.Accept, rs...)
			m.Want(200)
		}
		return len(seen) == 3000
	})
	flush(t, a)
	flush(t, b)
	for v, n := range seen {
		if n != 1 {
			t.Errorf("record %s came %d times", v, n)
		}
	}
	for _, e := range []*ear{ea, eb} {
		if lost, failed := e.counts(); lost+failed > 0 {
			t.Errorf("%d were lost, %d verdicts failed", lost, failed)
		}
	}
	if a.Held()+b.Held() > 0 {
		t.Error("something is still held")
	}
}

// Records that are not settled stay ours over further fetches, longer than their locks last;
// a member that vanishes leaves all of them to the others.
func TestUnsettledRecordsAreKeptAndComeAgain(t *testing.T) {
	c, cl := filled(t, 1, 30)
	a, ea := member(t, cl)
	first := collect(t, a, ea, 10)
	rest := collect(t, a, ea, 20)
	settle(t, a, share.Accept, rest...)
	flush(t, a)
	kept := time.NewTimer(3 * time.Second) // one and a half locks
	<-kept.C
	if lost, _ := ea.counts(); lost > 0 || a.Held() != 10 {
		t.Fatalf("%d were lost, %d are held", lost, a.Held())
	}
	shut(t, a) // closes the session without a verdict
	b, eb := member(t, client(t, c))
	again := collect(t, b, eb, 10)
	for i, r := range again {
		if r.Offset != first[i].Offset || r.Deliveries != 2 {
			t.Errorf("offset %d, delivery %d, want offset %d, delivery 2", r.Offset, r.Deliveries, first[i].Offset)
		}
	}
	settle(t, b, share.Accept, again...)
	flush(t, b)
}

// Each record has its own verdict: what is released comes again, and nothing else does.
func TestEachVerdict(t *testing.T) {
	_, cl := filled(t, 1, 9)
	m, e := member(t, cl)
	rs := collect(t, m, e, 9)
	var want []int64
	for i, r := range rs {
		v := share.Verdict(i%3 + 1)
		if v == share.Release {
			want = append(want, r.Offset)
		}
		settle(t, m, v, r)
	}
	var got []int64
	again := collect(t, m, e, 3)
	for _, r := range again {
		got = append(got, r.Offset)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("came again: %v, want %v", got, want)
	}
	if err := m.Renew(t.Context(), again[0].Token); err != nil {
		t.Errorf("renew: %v", err)
	}
	settle(t, m, share.Accept, again...)
	if err := m.Settle(again[0].Token, share.Accept, nil); err == nil {
		t.Error("a record was settled twice")
	}
	flush(t, m)
}

// A leader that moves has forgotten its locks: what it had given is lost, and the new leader
// gives it again.
func TestALeaderMoves(t *testing.T) {
	c, cl := filled(t, 2, 10)
	m, e := member(t, cl)
	collect(t, m, e, 10)
	topics, err := kadm.NewClient(cl).ListTopics(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.MoveTopicPartition("orders", 0, 1-topics["orders"].Partitions[0].Leader); err != nil {
		t.Fatal(err)
	}
	again := collect(t, m, e, 10)
	if lost, _ := e.counts(); lost != 10 {
		t.Errorf("%d were lost, want 10", lost)
	}
	settle(t, m, share.Accept, again...)
	flush(t, m)
}

// Whatever a broker answers to a session that it does not know any more, the member opens
// another one, and only what was acquired in the old one is lost.
func TestASessionIsGone(t *testing.T) {
	for _, gone := range []*kerr.Error{kerr.ShareSessionNotFound, kerr.InvalidShareSessionEpoch} {
		t.Run(gone.Message, func(t *testing.T) {
			c, cl := filled(t, 1, 5)
			m, e := member(t, cl)
			collect(t, m, e, 5)
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ShareFetch}, TopLevel: true, Err: gone, Count: 1})
			again := collect(t, m, e, 5)
			if lost, _ := e.counts(); lost != 5 {
				t.Errorf("%d were lost, want 5", lost)
			}
			settle(t, m, share.Accept, again...)
			flush(t, m)
		})
	}
}

// A member that was removed from the group joins again. What it holds can still be settled.
func TestAMemberIsFenced(t *testing.T) {
	for _, fenced := range []*kerr.Error{kerr.UnknownMemberID, kerr.FencedMemberEpoch} {
		t.Run(fenced.Message, func(t *testing.T) {
			c, cl := filled(t, 1, 5)
			m, e := member(t, cl)
			rs := collect(t, m, e, 5)
			hit := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ShareGroupHeartbeat}, Err: fenced, Count: 1})
			eventually(t, "the refused heartbeat", func() bool { return hit.Hits() > 0 })
			settle(t, m, share.Accept, rs...)
			flush(t, m)
			produce(t, cl, 5)
			settle(t, m, share.Accept, collect(t, m, e, 5)...)
			flush(t, m)
			if lost, failed := e.counts(); lost+failed > 0 {
				t.Errorf("%d were lost, %d verdicts failed", lost, failed)
			}
		})
	}
}

// A refusal that will not pass ends the member.
func TestAMemberIsNotAllowed(t *testing.T) {
	c := fake(t, 1, 1)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ShareGroupHeartbeat}, Err: kerr.GroupAuthorizationFailed})
	_, e := member(t, client(t, c))
	eventually(t, "the end", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return errors.Is(e.down, kerr.GroupAuthorizationFailed)
	})
}
