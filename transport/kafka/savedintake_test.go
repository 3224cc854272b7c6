package kafka_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-N04: of 64,000 records of one partition some wait for a retry, and the head too. What
// an orderly stop leaves behind are those and what was never handed out: nothing that is
// done comes again. Where many wait, the intake stops before that would be lost.
func TestStopRepeatsNothingThatIsDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open  int // of 1000
		stops bool
	}{"5.5 % wait": {55, false}, "40 % wait": {400, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stopAndReturn(t, embeddedCluster(t, 1), 64_000, c.open, c.stops)
		})
	}
}

// F-N04
func TestStopRepeatsNothingThatIsDoneOnKafka(t *testing.T) {
	t.Parallel()
	c := realCluster(t, brokertest.Kafka(t), 1)
	stopAndReturn(t, c, 64_000, 55, false)
}

func stopAndReturn(t *testing.T, c *cluster, records, open1000 int, stops bool) {
	t.Helper()
	c.produce(0, records, 1000, 0)
	src := c.group(kafka.GroupConfig{})
	m := open(t, src)
	r := rand.New(rand.NewPCG(1, 5))
	waits := map[uint64]bool{}
	handed := workOff(t, m, records, func(d *longshore.Delivery) bool {
		if d.Origin.Position == 0 || r.IntN(1000) < open1000 {
			waits[d.Origin.Position] = true
			return false
		}
		return true
	})
	if stopped := handed < records; stopped != stops {
		t.Fatalf("%d of %d were handed out", handed, records)
	}
	if stops {
		h, ok := m.Consumer.(transport.HeadReporter)
		if !ok {
			t.Fatal("the consumer does not report its heads")
		}
		eventually(t, "its partition is named", func() bool { heads := h.BlockedPartitions(); return len(heads) == 1 && heads[0].Full() })
		if told := strings.Join(m.told(transport.EventNotice), "\n"); !strings.Contains(told, "hands out no more") {
			t.Errorf("told %q", told)
		}
	}
	m.flush()
	m.shut()
	if told := strings.Join(m.told(transport.EventNotice), "\n"); strings.Contains(told, "handled again") {
		t.Errorf("told %q", told)
	}
	next := open(t, src)
	again := 0
	workOff(t, next, len(waits), func(d *longshore.Delivery) bool {
		if at := d.Origin.Position; !waits[at] && at < uint64(handed) { //nolint:gosec // not negative
			again++
		}
		return true
	})
	if again > 0 {
		t.Errorf("%d records that were done came again", again)
	}
}

// workOff receives up to n records and acks those that f is true for; the others come
// back in an hour. It ends early when no more come, and returns how many did.
func workOff(t *testing.T, m *member, n int, f func(d *longshore.Delivery) bool) (got int) {
	t.Helper()
	for got < n {
		limit := patience
		if got > 0 {
			limit = 3 * time.Second
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		ds, err := m.Receive(ctx, min(500, n-got))
		cancel()
		if err != nil {
			return got
		}
		for _, d := range ds {
			if f(d) {
				ack(t, d)
			} else if err := d.Nack(context.Background(), time.Hour); err != nil {
				t.Errorf("Nack: %v", err)
			}
		}
		got += len(ds)
	}
	return got
}
