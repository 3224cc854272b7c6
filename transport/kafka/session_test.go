package kafka_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka"
)

// A coordinator out of reach for longer than the session, while the partitions' leader is
// there: others have the partitions then, so what is out is lost, and the consumer ends,
// with both protocols. F-B03, F-C01
func TestSessionEndsWithoutACoordinator(t *testing.T) {
	t.Parallel()
	for name, protocol := range map[string]kafka.Protocol{"classic": kafka.Classic, "consumer": kafka.Consumer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fake(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "orders"), kfake.BrokerConfigs(map[string]string{"group.consumer.heartbeat.interval.ms": "500", "group.min.session.timeout.ms": "1000"}))
			coordinator := f.CoordinatorFor("orders")
			if err := f.MoveTopicPartition("orders", 0, 1-coordinator); err != nil {
				t.Fatal(err)
			}
			m := muteNode{keys: []kmsg.Key{kmsg.Heartbeat, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.ConsumerGroupHeartbeat, kmsg.OffsetCommit}}
			c := &cluster{addrs: f.ListenAddrs(), fake: f, topic: "orders", t: t}
			c.produce(0, 2, 1, 0)
			c.opts = []kgo.Opt{kgo.Dialer(m.dial)}
			g := open(t, c.group(kafka.GroupConfig{Protocol: protocol, SessionTimeout: 3 * time.Second, RebalanceTimeout: 3 * time.Second}))
			ds := g.take(2)
			ack(t, ds[0])
			c.waitCommitted(0, 1)
			m.mute(f.ListenAddrs()[coordinator])
			eventually(t, "the session is over", func() bool { return !ds[1].Owned() })
			if err := ds[1].Ack(t.Context()); err != longshore.ErrLost { //nolint:errorlint // it is
				t.Errorf("ack: %v", err)
			}
			m.heal()
		})
	}
}
