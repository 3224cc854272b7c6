package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const move = `version: 1
brokers:
  old: {url: "amqp://app@rabbit/shop", password: env:OLD_PW}
  new: {url: "kafka://k1,k2"}
bridge:
  orders:
    from: {broker: old, queue: orders, key: "header:customer-id"}
    to: {broker: new, topic: orders, group: shop, declare: {partitions: 12}}
    id: message-id
    dead_letters: {from: orders.dlq, to: orders-dlq}
    rate: 3000
    accept: [PRIORITY]
`

// A bridge.yaml needs no containers, and gives both ends, the dead letters and the defaults.
func TestRoutesOfAFile(t *testing.T) {
	c, err := Options{Environ: []string{"OLD_PW=secret", "LONGSHORE_BRIDGE_ORDERS_QUIET=5s"}}.Parse(filepath.Join("deploy", "bridge.yaml"), []byte(move))
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Route("orders")
	if err != nil {
		t.Fatal(err)
	}
	if r.Seed == nil || len(r.Declare) != 1 || len(r.Spare) != 2 || r.Rate != 3000 || r.Park != "orders.parked" || r.Ledger != filepath.Join("deploy", "ledger") || r.Quiet != 5*time.Second || r.Identity == nil {
		t.Errorf("the route is %+v", r)
	}
	if describe(r.LettersFrom).Name != "orders.dlq" || describe(r.LettersTo).Name != "orders-dlq" || describe(r.Parked).Name != "orders.parked" {
		t.Errorf("dead letters go from %q to %q, parked is %q", describe(r.LettersFrom).Name, describe(r.LettersTo).Name, describe(r.Parked).Name)
	}
	if _, err := c.Route("order"); err == nil || !strings.Contains(err.Error(), "known: orders") {
		t.Errorf("an unknown route gives %v", err)
	}
}

// F-K04: every mistake in the routes at once, each with its line and field.
func TestMistakesInRoutes(t *testing.T) {
	ps := problems(t, nowhere("OLD_PW=x"), `brokers:
  old: {url: "amqp://app@rabbit/shop", password: env:OLD_PW}
  new: {url: "kafka://k1"}
bridge:
  itself:
    from: {broker: old, queue: a}
    to: {broker: old, queue: a}
  chain:
    from: {broker: old, queue: b}
    to: {broker: old, queue: c}
  next:
    from: {broker: old, queue: c}
    to: {broker: new, topic: c, group: g}
    id: messageid
    accept: [PRIORITY, SPEED]
    rate: 0
  open:
    from: {broker: old, queue: d}
    dead_letters: {from: d.dlq}
  nameless:
    from: {url: "amqp://localhost/?queue=n"}
    to: {broker: old, queue: m}
    dead_letters: {from: n.dlq, to: m.dlq}
  many:
    from: {broker: old, queues: [x, y]}
    to: {broker: new, topic: t, topics: [u]}
    speed: 3
`)
	for _, want := range []string{
		"route `itself` leads to itself",
		"the target of route `chain` is the source of route `next`",
		"id `messageid` is not known",
		"unknown finding SPEED",
		"rate must be more than 0",
		"route `open` has no to",
		"dead_letters needs from and to",
		"the dead letters of route `nameless` would stay",
		"from must be one queue or one topic",
		"topic does not go with topics",
		"source has no consumer group",
		"speed",
	} {
		found := false
		for _, p := range ps {
			if strings.Contains(p.Text, want) {
				found = true
				if p.Line == 0 || p.Path == "" {
					t.Errorf("%q has no line or field: %+v", want, p)
				}
			}
		}
		if !found {
			t.Errorf("not reported: %q", want)
		}
	}
	if t.Failed() {
		for _, p := range ps {
			t.Log(p.Where, p.Path, p.Text, "=", p.Hint)
		}
	}
}
