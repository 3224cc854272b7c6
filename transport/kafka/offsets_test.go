package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

func eachProtocol(t *testing.T, f func(t *testing.T, p kafka.Protocol)) {
	t.Helper()
	for name, p := range protocols() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, p)
		})
	}
}

// F-C01: a handler of a partition that went to another member ends late. Its ack is
// lost, and no commit of the old owner follows. On a real broker, which would take it,
// the position does not move.
func TestLateAckMovesNoOffset(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, func(t *testing.T, c *cluster, p kafka.Protocol) {
		c.produce(0, 10, 1, 0)
		c.produce(10, 20, 1, 1)
		src := c.group(kafka.GroupConfig{Protocol: p, RebalanceDrain: 100 * time.Millisecond, SettleLinger: 20 * time.Millisecond})
		old := open(t, src)
		late := old.take(20)
		next := open(t, src)
		eventually(t, "one partition lost by the old owner", func() bool { lost, _, _ := old.counts(); return lost == 10 })
		moved := next.take(10)
		var commits atomic.Int32
		num := moved[0].Origin.Partition
		if c.fake != nil {
			c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Partitions: []int32{num}, Observe: true, Count: -1,
				When: func(kmsg.Request) bool { commits.Add(1); return true }})
		}
		for _, d := range late {
			err := d.Ack(context.Background())
			switch {
			case d.Origin.Partition == num && !errors.Is(err, longshore.ErrLost):
				t.Errorf("late ack of %s: %v, want ErrLost", d.Body, err)
			case d.Origin.Partition != num && err != nil:
				t.Errorf("ack of what stayed: %v", err)
			}
		}
		c.waitCommitted(1-num, 10)
		old.flush()
		if at, _ := c.committed(num); at > 0 {
			t.Errorf("partition %d moved to %d, its owner has acked nothing", num, at)
		}
		ack(t, moved[0])
		c.waitCommitted(num, 1)
		old.shut() // its last commit moves nothing either
		if at, _ := c.committed(num); at != 1 {
			t.Errorf("partition %d moved to %d, its owner has acked one", num, at)
		}
		if n := commits.Load(); c.fake != nil && n != 1 {
			t.Errorf("%d commits of the moved partition, want the new owner's one", n)
		}
	})
}

// F-C03: a commit that fails, or was carried out although it timed out, is followed
// by the newest state, never by an older one.
func TestCommitsOnlyGoForward(t *testing.T) {
	t.Parallel()
	for _, fault := range []*kerr.Error{kerr.RebalanceInProgress, kerr.RequestTimedOut, kerr.CoordinatorLoadInProgress} {
		t.Run(fault.Message, func(t *testing.T) {
			t.Parallel()
			eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
				c := embeddedCluster(t, 1)
				c.produce(0, 100, 1, 0)
				src := c.group(kafka.GroupConfig{Protocol: p, SettleLinger: 10 * time.Millisecond})
				m := open(t, src)
				ds := m.take(100)
				var sent []int64
				watch := c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Observe: true, Count: -1, When: func(r kmsg.Request) bool {
					for _, topic := range r.(*kmsg.OffsetCommitRequest).Topics { //nolint:errcheck // by the key
						sent = append(sent, topic.Partitions[0].Offset)
					}
					return true
				}})
				for i, d := range ds {
					if i%10 == 0 {
						c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: fault, Count: 1})
					}
					ack(t, d)
					if i%10 == 9 {
						m.flush()
					}
				}
				other := open(t, src) // forces a revoke
				m.shut()
				c.waitCommitted(0, 100)
				watch.Remove()
				other.none(300 * time.Millisecond)
				for i := 1; i < len(sent); i++ {
					if sent[i] < sent[i-1] {
						t.Fatalf("commits went back: %v", sent)
					}
				}
			})
		})
	}
}

// F-C05: a crash with a stuck record repeats it, and what was done after the last
// commit; not all that was done behind it. Foreign text repeats all and stops nothing.
func TestWhatIsDoneBehindAStuckRecordIsRemembered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(meta string) string
		want   int
	}{
		"ours":            {func(m string) string { return m }, 1},
		"cut":             {func(m string) string { return m[:len(m)-3] }, 100},
		"foreign":         {func(string) string { return "bAAQAA==" }, 100},
		"a newer version": {func(m string) string { return "ls9" + m[3:] }, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEither(t, 1, func(t *testing.T, k *cluster) {
				k.produce(0, 100, 1, 0)
				src := k.group(kafka.GroupConfig{SettleLinger: 10 * time.Millisecond})
				m := open(t, src)
				ds := m.take(100)
				ack(t, ds[1:]...)
				m.flush()
				m.shut()
				at, saved := k.committed(0)
				if at != 0 || !strings.HasPrefix(saved, "ls2.") {
					t.Fatalf("committed %d %q, want 0 and what is done", at, saved)
				}
				k.reset(0, 0, c.change(saved))
				next := open(t, src)
				again := next.take(c.want)
				next.none(200 * time.Millisecond)
				ack(t, again...)
				next.flush()
				k.waitCommitted(0, 100)
			})
		})
	}
}

// reset changes the group's position as an administrator does.
func (c *cluster) reset(partition int32, at int64, meta string) {
	c.t.Helper()
	var os kadm.Offsets
	os.Add(kadm.Offset{Topic: c.topic, Partition: partition, At: at, LeaderEpoch: -1, Metadata: meta})
	eventually(c.t, "an empty group", func() bool {
		return admin(c.t, c.addrs).CommitAllOffsets(context.Background(), c.topic, os) == nil
	})
}

// F-C05: a broker that allows less text gets less, and commits go on.
func TestMetadataLimitOfTheBroker(t *testing.T) {
	t.Parallel()
	for _, e := range []*kerr.Error{kerr.OffsetMetadataTooLarge, kerr.InvalidCommitOffsetSize} {
		t.Run(e.Message, func(t *testing.T) { t.Parallel(); metadataLimit(t, e) })
	}
}

func metadataLimit(t *testing.T, e *kerr.Error) {
	t.Helper()
	c := embeddedCluster(t, 1)
	const limit = 300
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: e, Count: -1, When: func(r kmsg.Request) bool {
		p := r.(*kmsg.OffsetCommitRequest).Topics[0].Partitions[0] //nolint:errcheck // by the key
		return p.Metadata != nil && len(*p.Metadata) > limit
	}})
	c.produce(0, 3000, 1, 0)
	m := open(t, c.group(kafka.GroupConfig{SettleLinger: 10 * time.Millisecond}))
	ds := m.take(3000)
	for i, d := range ds {
		if i%3 == 1 { // many short runs
			ack(t, d)
		}
	}
	m.flush()
	if _, saved := c.committed(0); len(saved) == 0 || len(saved) > limit {
		t.Errorf("%d characters saved, want some and at most %d", len(saved), limit)
	}
	for i, d := range ds {
		if i%3 != 1 {
			ack(t, d)
		}
	}
	m.flush()
	c.waitCommitted(0, 3000)
}

// F-C06: without a dead-letter topic that takes it, a record that always fails keeps
// its position; after a restart it comes again and those behind it do not.
func TestSuccessDoesNotPassAnEarlierFailure(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 21, 1, 0)
	src := c.group(kafka.GroupConfig{SettleLinger: 10 * time.Millisecond})
	m := open(t, src)
	ds := m.take(21)
	ack(t, ds[:5]...)
	ack(t, ds[6:]...)
	if err := ds[5].Reject(context.Background(), errors.New("bad")); !errors.Is(err, longshore.CodeUnsupported) || !ds[5].Owned() {
		t.Errorf("Reject: %v, owned %t; want unsupported and still open", err, ds[5].Owned())
	}
	m.flush()
	m.shut()
	if at, _ := c.committed(0); at != 5 {
		t.Errorf("committed %d, want 5", at)
	}
	next := open(t, src)
	again := next.take(1)
	if string(again[0].Body) != "5" {
		t.Errorf("after the restart came %s, want 5", again[0].Body)
	}
	next.none(200 * time.Millisecond)
	ack(t, again...)
	c.waitCommitted(0, 21)
}

// F-C07: a group that starts at the end has a position for partitions too which it
// never read from, also if the first commit fails, or the link to a real broker does
// about then.
func TestPartitionNeverReadHasAPosition(t *testing.T) {
	t.Parallel()
	onBoth(t, 3, func(t *testing.T, c *cluster, p kafka.Protocol) {
		c.produce(0, 30, 10, -1)
		proxy := faultproxy.New(t, c.addrs[0])
		if c.fake == nil {
			c.opts = []kgo.Opt{proxied(proxy)}
		}
		src := c.group(kafka.GroupConfig{Protocol: p, Start: kafka.Latest, SettleLinger: 10 * time.Millisecond})
		var failing *kfake.FaultHandle
		if c.fake != nil {
			failing = c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.CoordinatorNotAvailable, Count: 2})
		}
		m := open(t, src)
		proxy.CutAll()
		if failing != nil {
			if err := failing.Wait(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
		}
		for num := range int32(3) {
			eventually(t, "a position for each partition", func() bool { at, _ := c.committed(num); return at >= 0 })
		}
		m.none(100 * time.Millisecond)
		m.shut()
		c.produce(30, 31, 1, 2)
		next := open(t, src)
		if got := next.take(1)[0]; string(got.Body) != "30" {
			t.Errorf("after the restart came %s, want 30", got.Body)
		}
	})
}

// F-C07: the link fails before anything is committed; reopened, the same source goes
// on where it first began.
func TestStartAtTheEndDoesNotMoveOn(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 5, 1, 0)
	src := c.group(kafka.GroupConfig{Start: kafka.Latest, SettleLinger: 10 * time.Millisecond})
	failing := c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.NotCoordinator, Count: -1})
	m := open(t, src)
	if err := failing.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_ = m.Close(ctx) // it cannot commit
	c.produce(5, 6, 1, 0)
	failing.Remove()
	if got := open(t, src).take(1)[0]; string(got.Body) != "5" {
		t.Errorf("reopened came %s, want 5", got.Body)
	}
}

// F-C08: retention has overtaken the commit, or the commit lies beyond the end: the
// policy is applied and the gap is told once.
func TestCommitOutsideTheLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy kafka.OutOfRange
		commit int64
		first  string // body, "" for nothing
		text   string
		why    transport.SkipReason
	}{
		"overtaken, earliest": {kafka.ToEarliest, 3, "10", "7 offsets were deleted", transport.SkippedExpired},
		"overtaken, latest":   {kafka.ToLatest, 3, "", "7 offsets were deleted", transport.SkippedExpired},
		"beyond, earliest":    {kafka.ToEarliest, 50, "10", "30 offsets beyond the end", transport.SkippedTruncated},
		"beyond, latest":      {kafka.ToLatest, 50, "", "30 offsets beyond the end", transport.SkippedTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEither(t, 1, func(t *testing.T, k *cluster) {
				k.produce(0, 20, 1, 0)
				k.deleteBefore(0, 10)
				k.reset(0, c.commit, "")
				m := open(t, k.group(kafka.GroupConfig{OutOfRange: c.policy}))
				eventually(t, "the gap is told", func() bool { return len(m.told(transport.EventSkipped)) > 0 })
				if c.first == "" {
					m.none(200 * time.Millisecond)
					k.produce(20, 21, 1, 0)
				}
				if got := m.take(1)[0]; string(got.Body) != or(c.first, "20") {
					t.Errorf("first came %s, want %s", got.Body, or(c.first, "20"))
				}
				if told := m.told(transport.EventSkipped); len(told) != 1 || !strings.HasPrefix(told[0], string(c.why)+": ") || !strings.Contains(told[0], c.text) {
					t.Errorf("told %q, want one with %q", told, c.text)
				}
			})
		})
	}
	t.Run("fail", func(t *testing.T) {
		t.Parallel()
		onEither(t, 1, func(t *testing.T, k *cluster) {
			k.produce(0, 20, 1, 0)
			k.deleteBefore(0, 10)
			k.reset(0, 3, "")
			m := open(t, k.group(kafka.GroupConfig{OutOfRange: kafka.Fail}))
			if _, err := m.upTo(1, patience); !errors.Is(err, longshore.CodeRefused) || !strings.Contains(err.Error(), "7 offsets were deleted") {
				t.Errorf("Receive: %v", err)
			}
		})
	})
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (c *cluster) deleteBefore(partition int32, offset int64) {
	c.t.Helper()
	var os kadm.Offsets
	os.Add(kadm.Offset{Topic: c.topic, Partition: partition, At: offset})
	if _, err := admin(c.t, c.addrs).DeleteRecords(context.Background(), os); err != nil {
		c.t.Fatal(err)
	}
}

// F-C08: retention overtakes a paused consumer.
func TestRetentionOvertakesAPausedConsumer(t *testing.T) {
	t.Parallel()
	onEither(t, 1, overtaken)
}

func overtaken(t *testing.T, k *cluster) {
	k.produce(0, 5, 1, 0)
	m := open(t, k.group(kafka.GroupConfig{SettleLinger: 10 * time.Millisecond}))
	ack(t, m.take(5)...)
	pauser := m.Consumer.(transport.Pauser) //nolint:errcheck // it is one
	if err := pauser.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := 5; i < 25; i++ {
		k.produce(i, i+1, 1, 0)
	}
	k.deleteBefore(0, 20)
	if err := pauser.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	last, skipped := 4, 0
	for last < 24 {
		d := m.take(1)[0]
		n, _ := strconv.Atoi(string(d.Body))
		skipped += n - last - 1
		last = n
		ack(t, d)
	}
	eventually(t, "the gap is told once", func() bool {
		told := m.told(transport.EventSkipped)
		return len(told) == 1 && strings.Contains(told[0], fmt.Sprintf("%d offsets", skipped))
	})
	k.waitCommitted(0, 25)
}

// Nacks keep their order, wait, and count; what waits holds back only the window.
func TestNackWaitsAlone(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 10, 10, 0)
	m := open(t, c.group(kafka.GroupConfig{Window: 8, SettleLinger: 10 * time.Millisecond}))
	ds := m.take(8)
	start := time.Now()
	if err := ds[0].Nack(t.Context(), 3*time.Second); err != nil {
		t.Fatal(err)
	}
	ack(t, ds[1:]...)
	m.none(200 * time.Millisecond) // the window is full behind the one that waits
	again := m.take(1)[0]
	if took := time.Since(start); took < 3*time.Second || string(again.Body) != "0" || again.Attempt != 2 || !again.Origin.Redelivered {
		t.Errorf("after %s came %s, attempt %d", took, again.Body, again.Attempt)
	}
	ack(t, again)
	ack(t, m.take(2)...)
	c.waitCommitted(0, 10)
}

// The count of attempts goes with the record to the next owner.
func TestAttemptsSurviveARestart(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 3, 1, 0)
	src := c.group(kafka.GroupConfig{SettleLinger: 10 * time.Millisecond})
	m := open(t, src)
	ds := m.take(3)
	ack(t, ds[0])
	if err := ds[1].Nack(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := m.take(1)[0].Nack(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	m.flush()
	m.shut()
	for restart := range 2 {
		m = open(t, src)
		ds = m.take(2)
		if ds[0].Attempt != 3 || ds[1].Attempt != 1 {
			t.Errorf("restart %d: attempts %d and %d, want 3 and 1", restart, ds[0].Attempt, ds[1].Attempt)
		}
		m.flush()
		m.shut()
	}
}

// F-L05, F-C04: after one-record transactions, and an aborted one at the end, lag is
// 0, and no control record reaches a handler.
func TestTransactionsLeaveNoLag(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		transactions(t, c, 20)
		m := open(t, c.group(kafka.GroupConfig{SettleLinger: 10 * time.Millisecond}))
		ds := m.take(10)
		for i, d := range ds {
			if want := fmt.Sprint(2 * i); string(d.Body) != want {
				t.Errorf("received %s, want %s", d.Body, want)
			}
		}
		ack(t, ds...)
		m.none(200 * time.Millisecond)
		m.flush()
		c.noLag(m)
	})
}

func (c *cluster) noLag(m *member) {
	c.t.Helper()
	eventually(c.t, "lag 0", func() bool {
		lags, err := admin(c.t, c.addrs).Lag(context.Background(), c.topic)
		if err != nil {
			return false
		}
		n, _, err := m.Consumer.(transport.Backlogger).Backlog(context.Background()) //nolint:errcheck // it is one
		return lags[c.topic].Lag.Total() == 0 && n == 0 && err == nil
	})
}
