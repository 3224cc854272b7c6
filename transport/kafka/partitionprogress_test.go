package kafka_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

func progressOf(t *testing.T, c transport.Consumer) map[int32]transport.PartitionProgress {
	t.Helper()
	p, ok := c.(transport.ProgressReporter)
	if !ok {
		t.Fatal("it reports no progress")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all := map[int32]transport.PartitionProgress{}
	for _, at := range p.PartitionProgress(ctx) {
		all[at.Partition] = at
	}
	return all
}

// Each partition is reported with its position, its end and what is committed, from the
// first moment, while it is consumed, and by the member that takes over.
func TestPartitionProgress(t *testing.T) {
	onClusters(t, 2, func(t *testing.T, c *cluster) {
		c.produce(0, 10, 1, 0)
		src := c.group(kafka.GroupConfig{Start: kafka.Earliest, SettleLinger: 20 * time.Millisecond})
		m := open(t, src)
		ds := m.take(10)
		is := func(what string, m *member, want map[int32]string) {
			t.Helper()
			var now map[int32]string
			eventually(t, fmt.Sprintf("%s: %v", what, want), func() bool {
				now = map[int32]string{}
				for n, p := range progressOf(t, m.Consumer) {
					now[n] = fmt.Sprintf("position %d of %d, committed %d, lag %d", p.Position, p.End, p.Committed, p.Lag())
				}
				return fmt.Sprint(now) == fmt.Sprint(want)
			})
		}
		is("nothing is done", m, map[int32]string{0: "position 10 of 10, committed 0, lag 10", 1: "position 0 of 0, committed 0, lag 0"})
		ack(t, ds[1:]...)
		is("the first is not done", m, map[int32]string{0: "position 10 of 10, committed 0, lag 10", 1: "position 0 of 0, committed 0, lag 0"})
		ack(t, ds[0])
		is("all is done", m, map[int32]string{0: "position 10 of 10, committed 10, lag 0", 1: "position 0 of 0, committed 0, lag 0"})
		m.shut()
		c.produce(10, 14, 1, 0)
		next := open(t, src)
		is("the next owner", next, map[int32]string{0: "position 10 of 14, committed 10, lag 4", 1: "position 0 of 0, committed 0, lag 0"})
	})
}

// All members are listed, whichever program they are of, with what each has; the one that
// is asked knows itself.
func TestConsumersOfAGroup(t *testing.T) {
	onClusters(t, 2, func(t *testing.T, c *cluster) {
		src := c.group(kafka.GroupConfig{Start: kafka.Earliest})
		m := open(t, src)
		open(t, kafka.New(c.addrs, kafka.Config{ClientID: "an-old-shop"}).Group(c.topic, []string{c.topic}, kafka.GroupConfig{Start: kafka.Earliest}))
		eventually(t, "two members with a partition each, one of them own", func() bool {
			lister, ok := m.Consumer.(transport.ConsumerLister)
			if !ok {
				t.Fatal("it lists no consumers")
			}
			list, err := lister.Consumers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			own, strangers := 0, 0
			for _, l := range list.Consumers {
				if l.Own {
					own++
				}
				if l.Client == "an-old-shop" && l.Host != "" && l.Partitions == 1 && !l.Own {
					strangers++
				}
			}
			return list.Total == 2 && list.Partitions == 2 && own == 1 && strangers == 1
		})
	})
}
