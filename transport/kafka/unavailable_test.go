package kafka_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// Commits fail and fail while all else works: the intake goes on, far beyond the window,
// because what is done in order leaves it without a commit, until 65,536 records of the
// partition are done and not committed. It is told once, and the first commit that is
// taken carries everything. See ADR 12.
func TestIntakeGoesOnWhileCommitsFail(t *testing.T) {
	t.Parallel()
	const most, records = 1 << 16, 1<<16 + 500
	c := embeddedCluster(t, 1)
	c.produce(0, records, 10, 0)
	m := open(t, c.group(kafka.GroupConfig{Window: 50, SettleLinger: 20 * time.Millisecond}))
	ack(t, m.take(1)...)
	c.waitCommitted(0, 1)
	down := c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.CoordinatorNotAvailable, Count: -1})
	for n := 0; n < most; {
		ds := m.take(min(50, most-n))
		n += len(ds)
		ack(t, ds...)
	}
	m.none(500 * time.Millisecond)
	eventually(t, "the failing commits are told", func() bool { return len(m.told(transport.EventNotice)) > 0 })
	if at, _ := c.committed(0); at != 1 {
		t.Errorf("committed %d though no commit was taken", at)
	}
	if _, failed, downs := m.counts(); failed+downs > 0 {
		t.Errorf("%d settlements reported as failed, %d times down: nothing is lost yet", failed, downs)
	}
	if told := m.told(transport.EventNotice); len(told) != 1 {
		t.Errorf("told %d times: %q", len(told), told)
	}
	down.Remove()
	for n := 1 + most; n < records; {
		ds := m.take(min(50, records-n))
		n += len(ds)
		ack(t, ds...)
	}
	c.waitCommitted(0, records)
}
