package amqp_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// refuses wants one error for each pair, with both names and a hint; no words: it is taken.
func refuses(t *testing.T, name string, err error, words ...string) {
	t.Helper()
	if len(words) == 0 {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
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

// F-K04: settings of a queue that exclude each other are refused before anything is
// connected; both are named, with what to do.
func TestSettingsThatExcludeEachOther(t *testing.T) {
	type config = amqp.QueueConfig
	offset := amqp091.Table{"x-stream-offset": "first"}
	declared := func(typ amqp.QueueType, name string, value any) config {
		return config{Declare: amqp.Declare{Type: typ, Arguments: amqp091.Table{name: value}}}
	}
	for name, c := range map[string]struct {
		cfg   config
		words []string
	}{
		"exclusive and one active": {config{Exclusive: true, SingleActive: true}, []string{"Exclusive", "SingleActive"}},
		"exclusive quorum queue":   {config{Exclusive: true, Declare: amqp.Declare{Type: amqp.Quorum}}, []string{"Exclusive", "Declare.Type quorum"}},
		"two priorities":           {config{Priority: 3, Arguments: amqp091.Table{"x-priority": 4}}, []string{"Priority", "x-priority in Arguments"}},
		"prefetch and auto-ack":    {config{Prefetch: 10, AutoAck: true}, []string{"Prefetch", "AutoAck"}},
		"unlimited and auto-ack":   {config{Prefetch: amqp.Unlimited, AutoAck: true}, nil},
		"pulled auto-acks":         {config{Prefetch: 10, AutoAck: true, Pull: true, PullInterval: time.Second}, nil},
		"linger and auto-ack":      {config{SettleLinger: time.Second, AutoAck: true}, []string{"SettleLinger", "AutoAck"}},
		"dead letters of auto-ack": {config{DeadLettered: true, AutoAck: true}, []string{"DeadLettered", "AutoAck"}},
		"interval without pull":    {config{PullInterval: time.Second}, []string{"PullInterval", "Pull"}},
		"pull and all":             {config{Pull: true, Exclusive: true, SingleActive: true, Priority: 1, Tag: "t", Arguments: offset}, []string{"Exclusive does not", "SingleActive does not", "Priority does not", "Tag does not", "Arguments does not"}},
		"pull and auto-delete":     {config{Pull: true, Declare: amqp.Declare{AutoDelete: true}}, []string{"Declare.AutoDelete", "Pull"}},
		"stream":                   {config{Arguments: offset}, nil},
		"stream and auto-ack":      {config{Arguments: offset, AutoAck: true}, []string{"AutoAck", "stream"}},
		"unlimited stream":         {config{Arguments: offset, Prefetch: amqp.Unlimited}, []string{"Prefetch unlimited", "stream"}},
		"stream and one active":    {config{Arguments: offset, SingleActive: true}, []string{"SingleActive", "stream"}},
		"stream and priority":      {config{Arguments: offset, Priority: 1}, []string{"Priority", "stream"}},
		"dead letters of a stream": {config{Arguments: offset, DeadLettered: true}, []string{"DeadLettered", "stream"}},
		"stream that is a queue":   {config{Arguments: offset, Declare: amqp.Declare{Type: amqp.Quorum}}, []string{"Declare.Type quorum", "stream"}},
		"classic with a limit":     {declared(amqp.Classic, "x-delivery-limit", 3), []string{"x-delivery-limit", "Declare.Type classic"}},
		"quorum with a limit":      {declared(amqp.Quorum, "x-delivery-limit", 3), nil},
		"key without an exchange":  {declared(amqp.Quorum, "x-dead-letter-routing-key", "dead"), []string{"x-dead-letter-routing-key", "x-dead-letter-exchange"}},
		"at least once, dropping": {config{Declare: amqp.Declare{Type: amqp.Quorum, Arguments: amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-strategy": "at-least-once"}}},
			[]string{"at-least-once", "x-overflow"}},
		"at least once": {config{Declare: amqp.Declare{Type: amqp.Quorum, Arguments: amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}}}, nil},
		"two kinds of one exchange": {config{Declare: amqp.Declare{Bindings: []amqp.Binding{{Exchange: "shop", Kind: amqp.Topic}, {Exchange: "shop"}, {Exchange: "shop", Kind: amqp.Fanout}}}},
			[]string{"Declare.Bindings[2] of kind fanout", "Declare.Bindings[0] of kind topic", `"shop"`}},
		"two exchanges": {config{Declare: amqp.Declare{Bindings: []amqp.Binding{{Exchange: "shop", Kind: amqp.Topic}, {Exchange: "till", Kind: amqp.Fanout}}}}, nil},
	} {
		err := as[transport.Checker](t, amqp.New("amqp://h", amqp.Config{}).Queue("orders", c.cfg)).Check()
		refuses(t, name, err, c.words...)
	}
	for name, c := range map[string]struct {
		cfg   amqp.BroadcastConfig
		words []string
	}{
		"keys of a fanout":  {amqp.BroadcastConfig{Kind: amqp.Fanout, Keys: []string{"a"}}, []string{"Keys", "Kind fanout"}},
		"keys of headers":   {amqp.BroadcastConfig{Kind: amqp.HeadersKind, Keys: []string{"a"}}, []string{"Keys", "Kind headers"}},
		"keys of a topic":   {amqp.BroadcastConfig{Kind: amqp.Topic, Keys: []string{"a"}}, nil},
		"prefetch, no acks": {amqp.BroadcastConfig{AutoAck: true, Prefetch: 3}, []string{"Prefetch", "AutoAck"}},
	} {
		refuses(t, name, as[transport.Checker](t, amqp.New("amqp://h", amqp.Config{}).Broadcast("events", c.cfg)).Check(), c.words...)
	}
}

// F-K04: the same of a broker, and of its URL.
func TestBrokerSettingsThatExcludeEachOther(t *testing.T) {
	pw := transport.Static("x")
	for name, c := range map[string]struct {
		url   string
		cfg   amqp.Config
		words []string
	}{
		"login and certificate":      {"amqps://h", amqp.Config{External: true, User: "app", Password: pw}, []string{"User does not", "Password does not", "External"}},
		"login of the URL":           {"amqps://h?auth_mechanism=external", amqp.Config{User: "app"}, []string{"User", "External"}},
		"certificate":                {"amqps://h", amqp.Config{External: true}, nil},
		"renewal of a certificate":   {"amqps://h", amqp.Config{External: true, RenewEvery: time.Minute}, []string{"RenewEvery", "External"}},
		"renewal of the URL's":       {"amqp://u:p@h", amqp.Config{RenewEvery: time.Minute}, []string{"RenewEvery", "a password in the URL"}},
		"renewal":                    {"amqp://u@h", amqp.Config{RenewEvery: time.Minute, Password: pw}, nil},
		"two authorities":            {"amqps://h?cacertfile=/a", amqp.Config{TLS: &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}}, []string{"TLS", "RootCAs", "cacertfile"}},
		"two names":                  {"amqps://h?server_name_indication=a", amqp.Config{TLS: &tls.Config{ServerName: "b", MinVersion: tls.VersionTLS12}}, []string{"TLS", "ServerName", "server_name_indication"}},
		"authorities and a name":     {"amqps://h?cacertfile=/a", amqp.Config{TLS: &tls.Config{ServerName: "b", MinVersion: tls.VersionTLS12}}, nil},
		"everything that is at odds": {"amqp://h", amqp.Config{External: true, User: "a", RenewEvery: time.Second}, []string{"amqps", "User", "RenewEvery"}},
	} {
		refuses(t, name, as[transport.Checker](t, amqp.New(c.url, c.cfg).Queue("orders", amqp.QueueConfig{})).Check(), c.words...)
	}
}

// F-K04: what a container asks for and the queue cannot serve is refused by New.
func TestWishesThatAQueueCannotServe(t *testing.T) {
	b := amqp.New("amqp://h", amqp.Config{})
	bound := amqp.QueueConfig{Declare: amqp.Declare{Bindings: []amqp.Binding{{Exchange: "shop", Key: "orders.new"}}}}
	for name, c := range map[string]struct {
		src   transport.Source
		cfg   container.Config
		words []string
	}{
		"prefetch":           {b.Queue("orders", amqp.QueueConfig{Prefetch: 5}), container.Config{}, []string{"Prefetch 5", "workers and lookahead", "at least 20"}},
		"prefetch that fits": {b.Queue("orders", amqp.QueueConfig{Prefetch: 20}), container.Config{}, nil},
		"native":             {b.Queue("orders", amqp.QueueConfig{}), container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterNative}}, []string{"DeadLetter.Policy native", "DeadLettered"}},
		"native, auto-ack":   {b.Queue("orders", amqp.QueueConfig{AutoAck: true}), container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterNative}}, []string{"DeadLetter.Policy native", "AutoAck"}},
		"native, known":      {b.Queue("orders", amqp.QueueConfig{DeadLettered: true}), container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterNative}}, nil},
		"own queue":          {b.Queues(amqp.QueueConfig{}, "a", "b"), container.Config{DeadLetter: container.DeadLetter{To: "b"}}, []string{`DeadLetter.To "b"`, "rabbitmq queues"}},
		"own binding":        {b.Queue("orders", bound), container.Config{DeadLetter: container.DeadLetter{To: "shop/orders.new"}}, []string{"DeadLetter.To"}},
		"another key":        {b.Queue("orders", bound), container.Config{DeadLetter: container.DeadLetter{To: "shop/orders.dead"}}, nil},
		"own broadcast":      {b.Broadcast("events", amqp.BroadcastConfig{Kind: amqp.Fanout}), container.Config{DeadLetter: container.DeadLetter{To: "events/x"}}, []string{"DeadLetter.To", "broadcast"}},
		"elsewhere":          {b.Queue("orders", amqp.QueueConfig{}), container.Config{DeadLetter: container.DeadLetter{To: "orders.dlq"}}, nil},
	} {
		_, err := container.New(c.src, longshore.HandlerFunc(nil), c.cfg)
		if name == "prefetch" {
			if longshore.CodeOf(err) != longshore.CodeWindow || !strings.Contains(err.Error(), "at least 20") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		refuses(t, name, err, c.words...)
	}
}
