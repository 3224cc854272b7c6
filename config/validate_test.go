package config

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-K04: settings that exclude each other are refused with their line, all of them at
// once, in brokers, sources and containers; what was told of a broker is not told again
// of its containers.
func TestSettingsThatExcludeEachOther(t *testing.T) {
	ps := problems(t, nowhere("PW=x"), `brokers:
  r: {url: "amqp://localhost"}
  old: {url: "amqp://u@localhost", renew_every: 1m}
  k: {url: "kafka://k1:9092"}
  token: {url: "kafka://k1:9092", sasl: {mechanism: oauthbearer, user: app, password: env:PW}}
  s: {url: "sqs://", region: eu-west-1}
containers:
  a:
    source:
      broker: r
      queue: orders
      exclusive: true
      single_active: true
      auto_ack: true
      settle_linger: 1s
      prefetch: 5
      pull_interval: 1s
  b:
    source: {broker: old, queue: orders, prefetch: 5}
    dead_letter: {to: orders}
  c:
    source:
      broker: k
      topics: [orders]
      broadcast: true
      group: billing
      instance_id: a
    dead_letter: {policy: native}
  d:
    source: {broker: token, topics: ["^orders"], pattern: true, group: g, session_timeout: 2s}
    dead_letter: {to: orders.dlt}
  e:
    source: {broker: s, queue: orders, declare: {attributes: {DeduplicationScope: queue}}}
    dead_letter: {to: orders}
  f:
    source: amqp://localhost/?queue=orders&prefetch=5
    dead_letter: {policy: native}
    stuck: {after: never, action: replace}
  g:
    source: sqs://orders?region=eu-west-1
    dead_letter: {to: orders.dlq}
  h:
    source: {broker: r, queue: orders, queues: [orders, returns]}
    dead_letter: {via: k}
  i:
    source: {broker: r, queue: orders, kind: topic, keys: [a]}
    dead_letter: {to: orders dlt, via: k}
  j:
    source:
      broker: r
      exchange: prices
      broadcast: true
      kind: fanout
      keys: [a]
      queue: orders
      browse_counts: true
      declare: {}
    dead_letter: {to: prices.dead, via: kk}
  k:
    source: amqp://localhost/?exchange=prices&queue=orders&browse_counts=true
  l:
    source: amqp://localhost/?queue=orders&queues=a,b&keys=c
  m:
    source: {broker: r, exchange: prices}
  n:
    source: {broker: r, broadcast: true}
  o:
    source: {broker: k, topics: [orders], share: billing, group: g, window: 5}
telemetry: {metrics: prometheus, traces: otlp, otlp: {interval: 5s, sample: 2, endpoint: "http://otel", tls: {}}}
admin: {}
`)
	want := strings.Split(strings.TrimSpace(`
3:36 renew_every does not go with a password in the URL
5:66 sasl.user does not go with the mechanism OAUTHBEARER
12:7 exclusive does not go with single_active
15:7 settle_linger does not go with auto_ack
16:7 prefetch does not go with auto_ack
17:7 pull_interval does not go with push delivery
19:42 prefetch is 5, less than the 20 deliveries that workers
20:19 dead_letter.to "orders" does not go with rabbitmq queue "orders"
26:7 group does not go with broadcast
27:7 instance_id does not go with broadcast
28:19 dead_letter.policy native does not go with kafka
30:75 session_timeout 2s does not go with the heartbeat of 3s
31:19 dead_letter.to "orders.dlt" does not go with topic "^orders"
33:50 declare.attributes DeduplicationScope does not go with a standard queue
34:19 dead_letter.to "orders" does not go with the queue it comes from
36:44 prefetch is 5, less than the 20 deliveries
37:19 dead_letter.policy native does not go with rabbitmq queue "orders"
38:27 stuck.action replace does not go with a stuck.after of never
41:19 dead_letter.to "orders.dlq" is not a valid queue name
43:25 queue does not go with queues
44:19 dead_letter.via is set without to
46:40 kind does not go with a queue
46:53 keys does not go with a queue
47:19 dead_letter.to "orders dlt" is not a valid topic name, on broker k
54:7 keys does not go with kind fanout
55:7 queue does not go with broadcast
56:7 browse_counts does not go with broadcast
57:7 declare does not go with broadcast
58:41 unknown broker `+"`kk`"+`
60:47 parameter "queue" does not go with exchange
60:60 parameter "browse_counts" does not go with exchange
62:31 parameter "queue" does not go with queues
62:55 parameter "keys" does not go with a queue
64:25 exchange does not go with a queue
66:13 source has no exchange
68:59 group does not go with share
68:69 window does not go with share
69:55 interval does not go with metrics that are not sent by otlp
69:69 sample is 2
69:105 tls does not go with an endpoint that begins with http`), "\n")
	if len(ps) != len(want) {
		t.Errorf("%d problems, want %d", len(ps), len(want))
	}
	for i, w := range want {
		place, text, _ := strings.Cut(w, " ")
		if i < len(ps) && (ps[i].Where != "longshore.yaml:"+place || !strings.Contains(ps[i].Text, text) || ps[i].Hint == "") {
			t.Errorf("want %s, got %s: %s; %s", w, ps[i].Where, ps[i].Text, ps[i].Hint)
		}
	}
	if t.Failed() {
		t.Log(lines(ps))
	}
}

// `share` in a kafka source makes it a share group.
func TestAShareGroup(t *testing.T) {
	c := load(t, nowhere(), `
brokers: {k: {url: "kafka://k1:9092"}}
containers:
  orders:
    source: {broker: k, topics: [orders, returns], share: billing, start: latest, isolation: read_uncommitted, settle_linger: 50ms}
    dead_letter: {to: dead}
`)
	src, err := c.Source("orders")
	if err != nil {
		t.Fatal(err)
	}
	want := transport.Description{Transport: "kafka", Kind: "share group", Name: "orders,returns", Address: "k1:9092", Place: "topic"}
	if d := src.(transport.Describer).Describe(); d != want { //nolint:errcheck // it is one
		t.Errorf("%+v, want %+v", d, want)
	}
}

// `transactional` in a kafka source: {} is enough, and the constructor's mistakes are at their keys.
func TestTransactions(t *testing.T) {
	c := load(t, nowhere(), `
brokers: {k: {url: "kafka://k1:9092"}}
containers:
  few:
    source: {broker: k, topics: [orders], group: few, transactional: {}}
    dead_letter: {to: dead}
  all:
    source: {broker: k, topics: [orders], group: all, settle_linger: 50ms, transactional: {id: pricing-0, timeout: 5s, records: 100, max_bytes: 8MiB}}
    dead_letter: {to: dead}
`)
	for name, want := range map[string]kafka.Transactional{"few": {}, "all": {ID: "pricing-0", Timeout: 5 * time.Second, Records: 100, MaxBytes: 8 << 20}} {
		if _, err := c.Source(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := c.loader.file.Containers[name].Source.group().Transactional; got == nil || *got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	ps := problems(t, nowhere(), `
brokers: {k: {url: "kafka://k1:9092"}, quick: {url: "kafka://k1:9092", publish: {acks: leader}}}
containers:
  a:
    source: {broker: k, topics: [orders], group: g, isolation: read_uncommitted, settle_linger: 5s, transactional: {records: -1}}
    dead_letter: {to: dead}
  b:
    source: {broker: k, topics: [orders], share: g, transactional: {}}
    dead_letter: {to: dead}
  c:
    source: {broker: k, topics: [orders], group: g, transactional: {timeout: 20m, idd: x}}
    dead_letter: {to: dead}
  d:
    source: {broker: k, topics: [orders], group: g, transactional: true}
    dead_letter: {to: dead}
  e:
    source: {broker: quick, topics: [orders], group: g, transactional: {}}
    dead_letter: {to: dead}
  f:
    source: "kafka://k1:9092/orders?group=g&transactional=pricing-0&acks=leader"
    dead_letter: {to: dead}
  g:
    source: "kafka://k1:9092/orders?share=g&transactional=true"
    dead_letter: {to: dead}
`)
	for i, want := range []string{
		"5:53 isolation ReadUncommitted does not go with transactional",
		"5:82 settle_linger 5s does not go with a transactional.timeout of 10s",
		"5:126 source.transactional.records is negative",
		"8:53 transactional does not go with share",
		"11:69 transactional.timeout is 20m0s",
		"11:83 unknown key `idd`; did you mean `id`?",
		"14:68 source.transactional is one value, not a mapping",
		"17:57 transactional does not go with publish.acks",
		"20:5 transactional does not go with publish.acks",
		`23:45 parameter "transactional" does not go with a share group`,
	} {
		place, text, _ := strings.Cut(want, " ")
		if i >= len(ps) || ps[i].Where != "longshore.yaml:"+place || !strings.Contains(ps[i].Text, text) && !strings.Contains(ps[i].Text+"; "+ps[i].Hint, text) {
			t.Errorf("want %s, got\n%s", want, lines(ps))
		}
	}
}
