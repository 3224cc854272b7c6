package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// A third member joins. The second has records in work and drains for 15 s, and so long
// the first, which has given up a partition, waits to be let in again. What it does
// meanwhile is committed all the same: no stop waits for another one's handlers.
func TestCommitsDoNotWaitForOtherMembersDrains(t *testing.T) {
	t.Parallel()
	onEither(t, 8, func(t *testing.T, c *cluster) {
		src := c.group(kafka.GroupConfig{RebalanceDrain: 15 * time.Second, SettleLinger: time.Hour})
		first, second := open(t, src), open(t, src)
		eventually(t, "both are members", func() bool { return c.groupState() == "Stable 2" })
		for num := range int32(8) {
			c.produce(0, 5, 5, num)
		}
		ack(t, first.take(20)...)
		first.flush()
		busy := second.take(20)
		third := make(chan *member, 1)
		go func() { third <- open(t, src) }()
		eventually(t, "the first has given up its part", func() bool {
			return strings.Contains(strings.Join(first.told(transport.EventNotice), "\n"), "went to other members")
		})
		for num := range int32(8) {
			c.produce(5, 6, 6, num)
		}
		ack(t, first.take(2)...)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := first.Flush(ctx); err != nil {
			t.Errorf("Flush while the second drains: %v", err)
		}
		if at := c.sum(); at != 22 {
			t.Errorf("committed %d, want 22", at)
		}
		if state := c.groupState(); state != "PreparingRebalance 3" {
			t.Errorf("the group is %s: nobody drained any more, which shows nothing", state)
		}
		ack(t, busy...)
		(<-third).shut()
	})
}

// groupState is the state of the group and the number of its members.
func (c *cluster) groupState() string {
	c.t.Helper()
	gs, err := admin(c.t, c.addrs).DescribeGroups(context.Background(), c.topic)
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprint(gs[c.topic].State, " ", len(gs[c.topic].Members))
}
