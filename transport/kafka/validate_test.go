package kafka_test

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// refuses wants the words of both settings and a hint, all in one error.
func refuses(t *testing.T, name string, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), "; ") {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q is not in: %v", name, w, err)
		}
	}
}

// F-K04: settings that exclude each other are refused before anything is connected; both
// are named, with what to do. Each beside its neighbour alone is taken.
func TestSettingsThatExcludeEachOther(t *testing.T) {
	t.Parallel()
	secret := transport.Static("token")
	dial := kgo.Dialer(new(net.Dialer).DialContext)
	for name, c := range map[string]struct {
		broker, fine kafka.Config
		words        []string
	}{
		"user of a token": {kafka.Config{SASL: kafka.SASL{Mechanism: kafka.OAuthBearer, User: "app", Password: secret}}, kafka.Config{SASL: kafka.SASL{Mechanism: kafka.OAuthBearer, Password: secret}}, []string{"SASL.User", "OAUTHBEARER"}},
		"dialer and TLS":  {kafka.Config{TLS: true, Options: []kgo.Opt{dial}}, kafka.Config{Options: []kgo.Opt{dial}}, []string{"kgo.Dialer", "TLS"}},
		"TLS alone":       {kafka.Config{TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}, Options: []kgo.Opt{dial}}, kafka.Config{TLS: true}, []string{"kgo.Dialer", "TLSConfig"}},
	} {
		refuses(t, name, check(kafka.New([]string{"k"}, c.broker).Group("g", []string{"t"}, kafka.GroupConfig{})), c.words...)
		if err := check(kafka.New([]string{"k"}, c.fine).Group("g", []string{"t"}, kafka.GroupConfig{})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	few := kafka.Declare{Partitions: 1, Replicas: 2, Settings: map[string]string{"min.insync.replicas": "3"}}
	for name, c := range map[string]struct {
		topic string
		group kafka.GroupConfig
		words []string
	}{
		"session within a heartbeat": {"t", kafka.GroupConfig{SessionTimeout: 3 * time.Second}, []string{"SessionTimeout 3s", "heartbeat of 3s"}},
		"pattern that is none":       {"^ord(", kafka.GroupConfig{Pattern: true}, []string{`topic "^ord("`, "Pattern"}},
		"pattern that is created":    {"^ord", kafka.GroupConfig{Pattern: true, Declare: kafka.Declare{Partitions: 3}}, []string{"Declare", "Pattern"}},
		"replicas never in sync":     {"t", kafka.GroupConfig{Declare: few}, []string{"Declare.Replicas 2", "min.insync.replicas 3"}},
	} {
		refuses(t, name, check(kafka.New([]string{"k"}, kafka.Config{}).Group("g", []string{c.topic}, c.group)), c.words...)
	}
	quick := kafka.New([]string{"k"}, kafka.Config{Options: []kgo.Opt{kgo.HeartbeatInterval(time.Second)}})
	if err := check(quick.Group("g", []string{"t"}, kafka.GroupConfig{SessionTimeout: 3 * time.Second})); err != nil {
		t.Error(err)
	}
	_, err := quick.Publisher(kafka.PublisherConfig{Linger: 2 * time.Second, Timeout: time.Second})
	refuses(t, "linger beyond the timeout", err, "Linger 2s", "Timeout of 1s")
}

// F-K04: what a container asks for and a log cannot give is refused by New, and by Open.
func TestWishesThatALogCannotServe(t *testing.T) {
	t.Parallel()
	b := kafka.New([]string{"k"}, kafka.Config{})
	named := b.Group("g", []string{"orders", "refunds"}, kafka.GroupConfig{})
	pattern := b.Group("g", []string{"^orders"}, kafka.GroupConfig{Pattern: true})
	everybody := b.Broadcast([]string{"orders"}, kafka.BroadcastConfig{})
	handler := longshore.HandlerFunc(nil)
	for name, c := range map[string]struct {
		src   transport.Source
		dead  container.DeadLetter
		words []string
	}{
		"native":          {named, container.DeadLetter{Policy: container.DeadLetterNative}, []string{"DeadLetter.Policy native", "kafka"}},
		"own topic":       {named, container.DeadLetter{To: "refunds"}, []string{`DeadLetter.To "refunds"`, `topic "refunds"`}},
		"a partition":     {named, container.DeadLetter{To: "orders/3"}, []string{`DeadLetter.To "orders/3"`}},
		"within the own":  {pattern, container.DeadLetter{To: "orders.dlt"}, []string{`DeadLetter.To "orders.dlt"`, `topic "^orders"`, "narrower"}},
		"own broadcast":   {everybody, container.DeadLetter{To: "orders"}, []string{"DeadLetter.To"}},
		"no topic at all": {named, container.DeadLetter{To: "a b"}, []string{`DeadLetter.To "a b"`}},
	} {
		_, err := container.New(c.src, handler, container.Config{DeadLetter: c.dead})
		refuses(t, name, err, c.words...)
	}
	for _, src := range []transport.Source{named, everybody} {
		if _, err := container.New(src, handler, container.Config{DeadLetter: container.DeadLetter{To: "orders.dlt"}}); err != nil {
			t.Error(err)
		}
	}
	if _, err := named.Open(t.Context(), transport.OpenOptions{DeadLetter: "orders"}); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("Open: %v", err)
	}
}
