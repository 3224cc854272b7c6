package kafka_test

import (
	"crypto/tls"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-B01: links end after so many bytes, of one side or the other: within TLS, the
// versions, the login and the first metadata. Who looks and who publishes gets
// through once they last; who opens hears of it soon, by its type, or gets through.
func TestLinkCutAfterSoManyBytes(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	secure := &tls.Config{Certificates: []tls.Certificate{ours.issue(t, time.Now().Add(time.Hour), "127.0.0.1")}, MinVersion: tls.VersionTLS12}
	login := []kfake.Opt{kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "right")}
	for what, c := range map[string]*kfake.Cluster{"plain": fake(t, login...), "TLS": fake(t, append(login, kfake.TLS(secure))...)} {
		broker := func(p *faultproxy.Proxy) *kafka.Broker {
			cfg := kafka.Config{SASL: plain("app", "right")}
			if what == "TLS" { // the first link alone: brokers say themselves where they are
				cfg.TLSConfig = &tls.Config{RootCAs: ours.pool(), MinVersion: tls.VersionTLS12}
			} else {
				cfg.Options = []kgo.Opt{proxied(p)}
			}
			return kafka.New([]string{p.Addr()}, cfg)
		}
		var all sync.WaitGroup
		places := make(chan struct{}, 8) // all at once would be a test of the processor
		for _, n := range []int{0, 1, 20, 40, 60, 90, 130, 200, 300, 500, 800, 1300, 2000} {
			for _, cut := range []faultproxy.ByteCut{{N: n, FromServer: true}, {N: n, FromServer: true, Reset: true}, {N: n}} {
				places <- struct{}{}
				all.Go(func() {
					defer func() { <-places }()
					cutKafka(t, what, c, cut, broker)
				})
			}
		}
		all.Wait()
	}
}

func cutKafka(t *testing.T, what string, c *kfake.Cluster, cut faultproxy.ByteCut, broker func(*faultproxy.Proxy) *kafka.Broker) {
	proxy := faultproxy.New(t, c.ListenAddrs()[0])
	b := broker(proxy)
	step := func(name string, connections int, f func() error, codes ...longshore.Code) {
		cut.Connections = connections
		proxy.CutAfter(cut)
		began := time.Now()
		if err := f(); err != nil && !slices.Contains(codes, longshore.CodeOf(err)) {
			t.Errorf("%s, %+v, %s: %q: %v", what, cut, name, longshore.CodeOf(err), err)
		}
		if took := time.Since(began); took > patience/2 {
			t.Errorf("%s, %+v, %s: it took %s", what, cut, name, took)
		}
	}
	step("look", 2, func() error { return probe(t, b) })
	step("publish", 2, func() error {
		p, err := b.Publisher(kafka.PublisherConfig{})
		if err != nil {
			return err
		}
		return errors.Join(p.Publish(t.Context(), "orders", messages("a")...), p.Close(t.Context()))
	})
	// Who is hung up on each time cannot know why: a broker does so to a wrong login,
	// and to a client that speaks no TLS, or does.
	step("open", 0, func() error { return tryOpen(t, b) }, longshore.CodeUnreachable, longshore.CodeConnLost, longshore.CodeAuth, longshore.CodeTLS)
}
