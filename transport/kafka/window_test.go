package kafka_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/longshore-go/longshore/transport/kafka"
)

const (
	defaultWindow = 4096
	beyond        = defaultWindow + 1000
)

// A handler that hangs stops its partition at the window; a record that waits for
// its next attempt does not.
func TestRetriedRecordStopsNotItsPartition(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, beyond, 10, 0)
	m := open(t, c.group(kafka.GroupConfig{}))
	head := m.take(1)[0]
	ack(t, m.take(defaultWindow-1)...)
	m.none(300 * time.Millisecond)

	next, err := head.Again(2)
	if err != nil {
		t.Fatal(err)
	}
	rest := m.take(beyond - defaultWindow)
	ack(t, rest...)
	m.flush()
	if at, saved := c.committed(0); at != 0 || saved == "" {
		t.Errorf("committed at %d with %q, want 0 with what is done behind it", at, saved)
	}
	ack(t, next)
	m.flush()
	c.waitCommitted(0, beyond)
}

// A window that was set holds also while the oldest waits for a retry.
func TestWindowThatWasSetHolds(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 50, 10, 0)
	m := open(t, c.group(kafka.GroupConfig{Window: 20}))
	head := m.take(1)[0]
	if err := head.Nack(context.Background(), time.Hour); err != nil {
		t.Fatal(err)
	}
	ack(t, m.take(19)...)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if ds, err := m.Receive(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("received %d (%v) beyond the window", len(ds), err)
	}
}

// No partition that has records waits long for others, however few are asked for.
func TestFewAtATimeFromAllPartitions(t *testing.T) {
	t.Parallel()
	const partitions, each = 5, 200
	c := embeddedCluster(t, partitions)
	for p := range int32(partitions) {
		c.produce(0, each, 10, p)
	}
	m := open(t, c.group(kafka.GroupConfig{}))
	ack(t, m.take(partitions*each/4)...) // by then all have been fetched
	seen := map[int32]int{}
	for range partitions {
		ds := m.take(3)
		seen[ds[0].Origin.Partition] += len(ds)
		ack(t, ds...)
	}
	if len(seen) < partitions {
		t.Errorf("%d receives of 3 brought records of partitions %v, want of all %d", partitions, seen, partitions)
	}
}
