package dlq_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
	"github.com/longshore-go/longshore/transport/urls"
)

// behind is a site whose dead letters are replayed through a proxy.
type behind struct {
	site

	proxy  *faultproxy.Proxy
	source func() transport.Source
}

func behindProxies() map[string]func(t *testing.T) behind {
	byURL := func(t *testing.T, s site, addr string, escape func(string) string) behind {
		t.Helper()
		b := behind{site: s, proxy: faultproxy.New(t, addr)}
		through := strings.Replace(s.dead, escape(addr), escape(b.proxy.Addr()), 1)
		b.source = func() transport.Source {
			return s.through(t, through)
		}
		return b
	}
	return map[string]func(t *testing.T) behind{
		"rabbitmq": func(t *testing.T) behind {
			server := amqptest.New(t)
			return byURL(t, rabbit(t, server.URL), server.Addr, func(s string) string { return s })
		},
		"sqs": func(t *testing.T) behind {
			server := sqstest.New(t)
			return byURL(t, sqsSite(t, server.URL), strings.TrimPrefix(server.URL, "http://"), url.QueryEscape)
		},
		"kafka": func(t *testing.T) behind {
			c, err := kfake.NewCluster(kfake.NumBrokers(1))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			s := kafkaSite(t, c.ListenAddrs())
			b := behind{site: s, proxy: faultproxy.New(t, c.ListenAddrs()[0])}
			dial := kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, b.proxy.Addr())
			})
			b.source = func() transport.Source {
				topic := s.self + ".dlq"
				return kafka.New(c.ListenAddrs(), kafka.Config{Options: []kgo.Opt{dial}}).Group("longshore-dlq."+topic, []string{topic},
					kafka.GroupConfig{Start: kafka.Earliest, SessionTimeout: 10 * time.Second})
			}
			return b
		},
	}
}

func (s site) through(t *testing.T, raw string) transport.Source {
	t.Helper()
	return s.source(t, raw, urls.Options{DeadLetters: true, NoConsumer: true})
}

// The broker goes away in the middle of a replay: it ends with the error, and what it
// counts is true. Run again it goes on: nothing is lost, at most one batch comes twice.
func TestReplayWhoseBrokerGoesAway(t *testing.T) {
	t.Parallel()
	const total, batch = 60, 10
	for name, make := range behindProxies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := make(t)
			b.die(t, 1, total)
			away := func(r dlq.Result) {
				if r.Done == 2*batch {
					b.proxy.Refuse()
					b.proxy.ResetAll()
				}
			}
			first, err := dlq.Replay(t.Context(), dlq.Job{Source: b.source(), Batch: batch, Patience: 3 * time.Second, Quiet: 2 * time.Second, Progress: away})
			if code := longshore.CodeOf(err); err == nil || code != longshore.CodeMaybeSent && code != longshore.CodeConnLost && code != longshore.CodeUnreachable && code != longshore.CodeTimeout {
				t.Errorf("it ended with %q: %v, %+v", code, err, first)
			}
			if first.Done < 2*batch || first.Done+first.Open > 3*batch || first.Failed != 0 {
				t.Errorf("%+v: two batches were done, a third may have been sent, and none was refused", first)
			}
			if err := b.proxy.Listen(); err != nil {
				t.Fatal(err)
			}
			b.back(t, total-first.Done)
			second, err := dlq.Replay(t.Context(), dlq.Job{Source: b.source(), Batch: batch, Quiet: 1500 * time.Millisecond})
			if err != nil || second.Open != 0 || second.Done < total-first.Done-first.Open {
				t.Errorf("the second time: %+v %v", second, err)
			}
			seen, all := map[string]int{}, 0
			b.take(t, func(d *longshore.Delivery) { seen[d.Headers.String(longshore.HeaderID)]++; all++ }, func() bool { return len(seen) >= total })
			if len(seen) != total || all > total+batch || all > total+first.Open {
				t.Errorf("%d of %d arrived, %d in all; first %+v, then %+v", len(seen), total, all, first, second)
			}
			if open, _ := b.look(t); open != 0 {
				t.Errorf("%d are left", open)
			}
		})
	}
}
