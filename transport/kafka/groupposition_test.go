package kafka_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// onClusters runs f on the embedded cluster and on a real one.
func onClusters(t *testing.T, partitions int32, f func(t *testing.T, c *cluster)) {
	t.Run("embedded", func(t *testing.T) { f(t, embeddedCluster(t, partitions)) })
	t.Run("kafka", func(t *testing.T) { f(t, realCluster(t, brokertest.Kafka(t), partitions)) })
}

func remaining(t *testing.T, src transport.Source) transport.Remaining {
	t.Helper()
	r, err := src.(transport.Remainder).Remaining(t.Context()) //nolint:errcheck // it is one
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// F-M03: what a group has not done is counted, and what it has done above its position is not.
// The positions and what is done above them can be read, and carried over to another group.
func TestRemainingAndPositionsOfAGroup(t *testing.T) {
	onClusters(t, 2, func(t *testing.T, c *cluster) {
		src := c.group(kafka.GroupConfig{})
		c.produce(0, 10, 1, 0)
		c.produce(10, 15, 1, 1)
		if r := remaining(t, src); r.Ready != 15 || r.Consumers != 0 || !r.Exact || len(r.Of) != 1 {
			t.Errorf("before anything: %+v", r)
		}
		m := open(t, src)
		for _, d := range m.take(15) {
			if d.Origin.Partition == 0 && (d.Origin.Position < 3 || d.Origin.Position == 5 || d.Origin.Position == 6) {
				ack(t, d)
			}
		}
		m.flush()
		c.waitCommitted(0, 3)
		if r := remaining(t, src); r.Ready != 15-5 || r.Consumers != 1 {
			t.Errorf("with 5 of 15 done: %+v", r)
		}
		m.shut()
		at, err := c.broker().GroupPositions(t.Context(), c.topic)
		if err != nil {
			t.Fatal(err)
		}
		p := at[c.topic][0]
		if p.Offset != 3 || fmt.Sprint(p.Done) != "[{5 7}]" || p.Has(4) || !p.Has(2) || !p.Has(6) {
			t.Errorf("%+v", p)
		}
		other := c.topic + "-other"
		if err := c.broker().SeedGroup(t.Context(), other, at); err != nil {
			t.Fatal(err)
		}
		next := c.broker().Group(other, []string{c.topic}, kafka.GroupConfig{})
		if r := remaining(t, next); r.Ready != 10 || r.Consumers != 0 {
			t.Errorf("the other group: %+v", r)
		}
		ds := open(t, next).take(10)
		for _, d := range ds {
			if d.Origin.Partition == 0 && p.Has(int64(d.Origin.Position)) { //nolint:gosec // small
				t.Errorf("offset %d is done and was received again", d.Origin.Position)
			}
		}
	})
}

// A group without members is seeded and the seed is dropped; one with members is refused, of
// either protocol, and one that was used keeps its positions.
func TestSeedingAGroup(t *testing.T) {
	onClusters(t, 2, func(t *testing.T, c *cluster) {
		b := c.broker()
		c.produce(0, 8, 1, 0)
		ends, err := b.Ends(t.Context(), c.topic)
		if err != nil || ends[c.topic][0].Offset != 8 || ends[c.topic][1].Offset != 0 {
			t.Fatalf("%v, %v", ends, err)
		}
		if err := b.SeedGroup(t.Context(), c.topic, ends); err != nil {
			t.Fatal(err)
		}
		src := c.group(kafka.GroupConfig{})
		if r := remaining(t, src); r.Ready != 0 {
			t.Errorf("seeded at the end: %+v", r)
		}
		if err := b.DropSeed(t.Context(), c.topic, ends); err != nil {
			t.Fatal(err)
		}
		if r := remaining(t, src); r.Ready != 8 {
			t.Errorf("after the seed was dropped: %+v", r)
		}
		if err := b.SeedGroup(t.Context(), c.topic, kafka.Positions{"missing": {0: {}}}); !errors.Is(err, longshore.CodeNotFound) {
			t.Errorf("a topic that does not exist: %v", err)
		}
		begin, err := b.Beginnings(t.Context(), c.topic)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.SeedGroup(t.Context(), c.topic, begin); err != nil {
			t.Fatal(err)
		}
		for _, protocol := range []kafka.Protocol{kafka.Classic, kafka.Consumer} {
			group := c.topic
			if protocol == kafka.Consumer {
				group += "-new"
			}
			m := open(t, b.Group(group, []string{c.topic}, kafka.GroupConfig{Protocol: protocol}))
			ack(t, m.take(8)...)
			m.flush()
			for name, err := range map[string]error{"seed": b.SeedGroup(t.Context(), group, ends), "drop": b.DropSeed(t.Context(), group, begin)} {
				has, ok := errors.AsType[*kafka.GroupHasMembersError](err)
				if !ok || !errors.Is(err, longshore.CodeState) || len(has.Members) != 1 {
					t.Errorf("%s a group with a member: %v", name, err)
				}
			}
			m.shut()
		}
		if err := b.DropSeed(t.Context(), c.topic, begin); !errors.Is(err, longshore.CodeState) {
			t.Errorf("drop the seed of a group that was used: %v", err)
		}
	})
}
