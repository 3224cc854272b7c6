package bridge_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
)

// behind is a place on a real broker: its URL, and a URL of the same place through a proxy.
type behind struct {
	direct, through string
	proxy           *faultproxy.Proxy
	restart         func() // the broker's; nil where it keeps nothing, as ElasticMQ does
}

// brokersBehind makes places on the real brokers. What is restarted is the test's own.
func brokersBehind(t *testing.T, restarted string) map[string]func(t *testing.T) behind {
	rabbit, kafkas, queues := brokertest.AMQP(t), brokertest.Kafka(t), brokertest.SQS(t)
	var restart func()
	switch restarted {
	case "rabbitmq":
		node := brokertest.FaultNode(t)
		rabbit, restart = node.URL, node.Restart
	case "kafka":
		node := brokertest.FaultKafka(t)
		kafkas, restart = node.Addrs, node.Restart
	}
	via := func(t *testing.T, direct, addr string) behind {
		p := faultproxy.New(t, addr)
		return behind{direct: direct, through: strings.Replace(direct, addr, p.Addr(), 1), proxy: p, restart: restart}
	}
	return map[string]func(t *testing.T) behind{
		"rabbitmq": func(t *testing.T) behind {
			u, err := url.Parse(rabbit)
			if err != nil {
				t.Fatal(err)
			}
			return via(t, queueOn(t, rabbit), u.Host)
		},
		"kafka": func(t *testing.T) behind {
			b := via(t, topicOn(t, kafkas), kafkas[0])
			b.through = proxied + strings.TrimPrefix(b.through, "kafka://")
			return b
		},
		"sqs": func(t *testing.T) behind {
			u, err := url.Parse(queues)
			if err != nil {
				t.Fatal(err)
			}
			p := faultproxy.New(t, u.Host)
			name := brokertest.Name(t, "bridge")
			return behind{direct: sqsOn(queues, name), through: sqsOn("http://"+p.Addr(), name), proxy: p}
		},
	}
}

// The whole soak on real brokers: kill -9 of the bridge, cuts of both its sides, a target that is
// away, and a source that restarts. Nothing is lost or changed, the order of each key holds, and
// copies are bounded by what was on its way.
func TestFaultsOfBothSidesLoseNothing(t *testing.T) {
	messages, kills, cuts := size(t, "LONGSHORE_BRIDGE_N", 600), size(t, "LONGSHORE_BRIDGE_KILLS", 3), size(t, "LONGSHORE_BRIDGE_CUTS", 4)
	away := time.Duration(size(t, "LONGSHORE_BRIDGE_AWAY", 2)) * time.Second
	pairs := [][2]string{{"rabbitmq", "kafka"}, {"kafka", "rabbitmq"}, {"rabbitmq", "sqs"}, {"sqs", "rabbitmq"}}
	if os.Getenv("LONGSHORE_BRIDGE_N") == "" {
		pairs = pairs[:1] // restarts take their time: make soak-bridge has the others
	}
	for _, pair := range pairs {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
			places := brokersBehind(t, pair[0])
			from, to := places[pair[0]](t), places[pair[1]](t)
			src := declared(t, from.direct)
			declared(t, to.direct)
			dir, steps := t.TempDir(), kills+cuts+2
			part, published := messages/steps, 0
			more := func() {
				publishMore(t, src, published, part)
				published += part
			}
			way := strings.Join([]string{from.through, to.through, dir}, "\n")
			for range kills {
				more()
				killSoon(t, way, 20*time.Millisecond, dir)
			}
			r := run(t, bridge.Config{From: source(t, from.through), To: source(t, to.through), Ledger: openLedger(t, dir), OpenFor: 100 * time.Millisecond})
			moves := func(why string) {
				before := r.Stats().Forwarded
				until(t, "it moves after "+why, func() bool { return r.Stats().Forwarded > before })
			}
			for i := range cuts {
				more()
				[]*faultproxy.Proxy{from.proxy, to.proxy}[i%2].ResetAll()
				more()
				moves(fmt.Sprint("cut ", i))
			}
			to.proxy.Refuse()
			to.proxy.CutAll()
			<-time.After(away)
			if err := to.proxy.Listen(); err != nil {
				t.Fatal(err)
			}
			if from.restart != nil {
				from.restart()
			}
			for published < messages {
				more()
			}
			until(t, "all is moved", func() bool { return verified(t, dir, nil).Confirmed == published })
			stop(t, r)
			v := verified(t, dir, nil)
			if !v.OK() || v.Anonymous != 0 || v.Parked != 0 {
				t.Errorf("%v; missing %v", v, v.Missing)
			}
			faults := kills + cuts + 2
			arrived(t, to.direct, published, faults*64, v.Copies, pair[0] != "sqs" && pair[1] != "sqs")
			t.Logf("%v", v)
		})
	}
}

// proxied marks a Kafka address of a proxy: a cluster of one node, which is never dialled directly.
const proxied = "kafka-proxied://"

// dialOnly goes to the proxy, whatever address the cluster names.
func dialOnly(addr string) kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	})
}
