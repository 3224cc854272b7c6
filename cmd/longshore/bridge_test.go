package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// site is a service that is to be moved: a bridge.yaml, and both brokers.
type site struct {
	file   string
	server *amqptest.Server
	old    *amqp.Broker
	addrs  []string // of Kafka
	kafka  *kfake.Cluster
}

// moving is a site with 20 orders on the old side, one of them with an address for a reply, and
// two dead letters.
func moving(t *testing.T, kind amqp.QueueType) *site {
	t.Helper()
	server := amqptest.New(t)
	k, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	old := amqp.New(server.URL, amqp.Config{})
	pub, err := old.Publisher(amqp.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pub.Close(t.Context()) }()
	for _, name := range []string{"orders", "orders.dlq"} {
		c, err := old.Queue(name, amqp.QueueConfig{Declare: amqp.Declare{Type: kind}}).Open(t.Context(), transport.OpenOptions{Window: 1, Paused: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 22 {
		to := "orders"
		if n >= 20 {
			to = "orders.dlq"
		}
		m := &longshore.Message{ID: fmt.Sprint("o-", n), ReplyTo: map[bool]string{true: "answers"}[n == 3]}
		m.Headers.Set("customer", fmt.Sprint("c-", n%3))
		if err := pub.Publish(t.Context(), to, m); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	text := fmt.Sprintf(`brokers:
  old: {url: %q}
  new: {url: "kafka://%s"}
bridge:
  orders:
    from: {broker: old, queue: orders, key: "header:customer", declare: {type: %s}}
    to: {broker: new, topic: orders, group: shop, declare: {partitions: 3}}
    dead_letters: {from: orders.dlq, to: orders-dlq}
    quiet: 200ms
`, server.URL, strings.Join(k.ListenAddrs(), ","), kind)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &site{file, server, old, k.ListenAddrs(), k}
}

// bridge runs a verb with the site's file.
func (s *site) bridge(t *testing.T, w world, want int, text string, args ...string) outcome {
	t.Helper()
	got := w.run(t, append(append([]string{"bridge"}, args...), "-c", s.file)...)
	if got.code != want || !strings.Contains(got.out+got.err, text) {
		t.Fatalf("bridge %s: exit %d, want %d and %q:\n%s%s", strings.Join(args, " "), got.code, want, text, got.out, got.err)
	}
	return got
}

// The verbs in the order of a move that is interrupted and taken back: their exit codes, what
// they print, and the command that comes next.
func TestBridgeVerbs(t *testing.T) {
	s := moving(t, amqp.Classic)
	file, old := s.file, s.old
	verb := func(w world, want int, text string, args ...string) outcome {
		t.Helper()
		return s.bridge(t, w, want, text, args...)
	}
	verb(world{}, 1, "E REPLY-TO", "check")
	verb(world{}, 2, "unknown finding SPEED", "check", "--accept", "SPEED")
	var found checkResult
	if err := json.Unmarshal([]byte(verb(world{}, 0, "", "check", "--accept", "REPLY-TO", "--json").out), &found); err != nil || found.Sampled != 20 || found.Keys != 3 || len(found.Privileges) != 2 {
		t.Errorf("%v %+v", err, found)
	}
	verb(world{}, 4, "no ledger in", "verify")
	verb(world{}, 1, "ready 20, unsettled 0, delayed 0, dead letters 2", "remaining")
	verb(world{}, 4, "check finds REPLY-TO", "cutover", "--yes")
	verb(world{}, 2, "--yes", "cutover", "--accept", "REPLY-TO")
	verb(world{}, 2, `unknown route "order"`, "check", "order")
	verb(world{}, 4, "no bindings", "mirror")
	verb(world{}, 4, "not drained yet", "finish", "--yes")

	verb(interruptAt("new consumers: start"), 130, "next: longshore bridge cutover orders -c "+file, "cutover", "--yes", "--accept", "REPLY-TO")
	verb(world{}, 0, "missing 0, extra 0, changed 0", "verify") // a part of the orders was moved
	verb(interruptAt("old consumers: start"), 130, "next: longshore bridge rollback orders", "rollback", "--yes")
	verb(world{}, 4, "a rollback is under way", "cutover", "--yes")
	verb(world{}, 1, "orders (flows-back)", "remaining")

	seen := make(chan string, 100)
	c, err := container.New(old.Queue("orders", amqp.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error { seen <- d.ID; return nil }),
		container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	verb(world{}, 0, "route orders: planned", "rollback", "--yes")
	for range 20 {
		<-seen
	}
	if len(seen) > 0 {
		t.Errorf("%d orders came back twice", len(seen))
	}

	state := filepath.Join(filepath.Dir(file), "ledger", "orders", "state.json")
	if err := os.WriteFile(state, []byte(`{"version": 9, "route": "orders", "phase": "planned"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	verb(world{}, 7, "newer release", "cutover", "--yes")
}

// Where no message may be looked at, a cut-over begins only if the operator answers for the
// identities.
func TestCutoverWithoutALook(t *testing.T) {
	s := moving(t, amqp.Quorum)
	s.bridge(t, world{}, 0, "no message was looked at", "check")
	s.bridge(t, world{}, 4, "(NO-ID)", "cutover", "--yes")
	s.bridge(t, world{}, 2, "unknown finding NOID", "cutover", "--yes", "--accept", "NOID")
	s.bridge(t, interruptAt("new consumers: start"), 130, "next: longshore bridge cutover orders", "cutover", "--yes", "--accept", "NO-ID")
}

// interruptAt presses Ctrl-C when a text appears on stderr.
func interruptAt(text string) world {
	signals, done := make(chan os.Signal, 1), false
	return world{signals: signals, wrote: func(stderr string) {
		if !done && strings.Contains(stderr, text) {
			done = true
			signals <- os.Interrupt
		}
	}}
}
