package kafka_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// A follower reads what is written after its opening, and the group's position stays.
func TestFollowCommitsNothing(t *testing.T) {
	onClusters(t, 1, func(t *testing.T, c *cluster) {
		c.produce(0, 5, 1, 0)
		follower, is := c.group(kafka.GroupConfig{}).(transport.Follower)
		if !is {
			t.Fatal("a group cannot be followed")
		}
		copies, missing, err := follower.Follow(t.Context())
		if err != nil || missing != "" {
			t.Fatal(missing, err)
		}
		f := open(t, copies)
		defer f.shut()
		c.produce(5, 8, 1, 0)
		ds := f.take(3)
		if ds[0].Origin.Position != 5 || ds[2].Origin.Position != 7 {
			t.Errorf("positions %d to %d", ds[0].Origin.Position, ds[2].Origin.Position)
		}
		ack(t, ds...)
		f.flush()
		all, err := admin(t, c.addrs).FetchOffsets(t.Context(), c.topic)
		if o, found := all.Lookup(c.topic, 0); found && o.At >= 0 || err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			t.Errorf("the group has committed %+v, %v", o, err)
		}
	})
}
