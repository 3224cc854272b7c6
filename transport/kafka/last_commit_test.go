package kafka_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-A02, F-C03: the last commit of a partition is refused, twice, by what passes. It is
// made again while there is time: nothing that was acked is lost, nothing comes twice.
func TestLastCommitIsTriedAgain(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
		passing := []*kerr.Error{kerr.RebalanceInProgress, kerr.NotCoordinator}
		if p == kafka.Consumer {
			passing = append(passing, kerr.StaleMemberEpoch)
		}
		for _, ke := range passing {
			t.Run(ke.Message, func(t *testing.T) {
				t.Parallel()
				t.Run("close", func(t *testing.T) { lastCommit(t, p, ke, true) })
				t.Run("revoke", func(t *testing.T) { lastCommit(t, p, ke, false) })
			})
		}
	})
}

// lastCommit acks all that a member has, and lets its last commit fail twice.
func lastCommit(t *testing.T, p kafka.Protocol, ke *kerr.Error, closes bool) {
	t.Helper()
	c := embeddedCluster(t, 2)
	c.produce(0, 10, 1, 0)
	c.produce(10, 20, 1, 1)
	src := c.group(kafka.GroupConfig{Protocol: p, SettleLinger: time.Hour})
	m := open(t, src)
	ds := m.take(20)
	m.flush()
	f := c.refuseCommits(ke, closes)
	ack(t, ds...)
	f.leave(2)
	var owners []*member
	if closes {
		m.shut()
		owners = []*member{open(t, src)}
	} else {
		owners = []*member{m, open(t, src)}
		eventually(t, "each has a partition", func() bool { return owners[0].partitions() == 1 && owners[1].partitions() == 1 })
	}
	c.produce(20, 21, 1, 0)
	c.produce(21, 22, 1, 1)
	for _, o := range owners {
		for _, d := range o.take(2 / len(owners)) {
			if len(d.Body) < 2 || string(d.Body) < "20" {
				t.Errorf("record %s came again", d.Body)
			}
		}
	}
	if _, failed, _ := m.counts(); failed > 0 {
		t.Errorf("%d acks reported as not committed", failed)
	}
}

// What no other try can change is not tried again: a member that was thrown out, or
// whose topic is gone, does not keep a stop waiting.
func TestLastCommitThatIsInVain(t *testing.T) {
	t.Parallel()
	for _, ke := range []*kerr.Error{kerr.UnknownTopicID, kerr.GroupAuthorizationFailed, kerr.UnknownMemberID, kerr.IllegalGeneration} {
		t.Run(ke.Message, func(t *testing.T) {
			t.Parallel()
			c := embeddedCluster(t, 1)
			c.produce(0, 10, 1, 0)
			m := open(t, c.group(kafka.GroupConfig{SettleLinger: time.Hour}))
			ds := m.take(10)
			m.flush()
			f := c.refuseCommits(ke, false)
			ack(t, ds...)
			if err := m.Close(context.Background()); err == nil || errors.Is(err, longshore.CodeTimeout) {
				t.Errorf("Close: %v", err)
			}
			if n := f.count(); n > 2 { // one may be the committer's
				t.Errorf("%d commits", n)
			}
			if _, failed, _ := m.counts(); failed != 10 {
				t.Errorf("%d acks reported as not committed, want 10", failed)
			}
		})
	}
}

func (m *member) partitions() int {
	return m.Consumer.(transport.Partitioner).Partitions() //nolint:errcheck // it is one
}

// refusal lets commits fail: all at first, then as many as are left.
type refusal struct {
	mu   sync.Mutex
	left int // -1 is all
	last kmsg.Request
	seen int
}

// refuseCommits lets commits fail, of both partitions or of the second only: the client
// itself looks at what is answered for the first.
func (c *cluster) refuseCommits(ke *kerr.Error, second bool) *refusal {
	f := &refusal{left: -1}
	fault := kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: ke, Count: -1, When: f.refuses}
	if second {
		fault.Partitions = []int32{1}
	}
	c.fake.Fault(fault)
	return f
}

func (f *refusal) leave(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = n
}

// refuses is asked once for each partition of a request.
func (f *refusal) refuses(r kmsg.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r == f.last {
		return true
	}
	if f.left == 0 {
		return false
	}
	f.left = max(f.left-1, -1)
	f.last = r
	f.seen++
	return true
}

func (f *refusal) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}
