package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// A file that cannot work is refused before any broker is asked.
func TestRoutesThatCannotWork(t *testing.T) {
	for name, c := range map[string]struct{ routes, text string }{
		"a route to itself": {"  a: {from: {broker: old, queue: orders}, to: {broker: old, queue: orders}}\n", "leads to itself"},
		"a target that is another route's source": {"  a: {from: {broker: old, queue: orders}, to: {broker: old, queue: more}}\n" +
			"  b: {from: {broker: old, queue: more}, to: {broker: old, queue: last}}\n", "is the source of route"},
		"an unknown finding": {"  a: {from: {broker: old, queue: orders}, to: {broker: old, queue: more}, accept: [SPEED]}\n", "unknown finding SPEED"},
		"an inbox of nobody": {"  a: {from: {broker: old, queue: orders}, to: {broker: old, queue: more}, inbox: {table: x}}\n", "inbox needs consumer"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "bridge.yaml")
			if err := os.WriteFile(file, []byte("brokers: {old: {url: \"amqp://127.0.0.1:9\"}}\nbridge:\n"+c.routes), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, verb := range []string{"check", "cutover", "run", "verify"} {
				if got := (world{}).run(t, "bridge", verb, "a", "-c", file); got.code != 1 || !strings.Contains(got.err, "longshore config check") {
					t.Errorf("%s: %+v", verb, got)
				}
			}
			if got := (world{}).run(t, "config", "check", "-c", file); got.code == 0 || !strings.Contains(got.out+got.err, c.text) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// consuming runs a container that takes everything, until the test or the function ends it.
func consuming(t *testing.T, src transport.Source) (end func()) {
	t.Helper()
	c, err := container.New(src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
		container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	var once sync.Once
	return func() {
		once.Do(func() {
			if err := c.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// newSide is what the service consumes from after the move.
func (s *site) newSide() transport.Source {
	return kafka.New(s.addrs, kafka.Config{}).Group("shop", []string{"orders"}, kafka.GroupConfig{})
}

// put publishes to a queue of the old side.
func (s *site) put(t *testing.T, queue string, m *longshore.Message) {
	t.Helper()
	pub, err := s.old.Publisher(amqp.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pub.Close(t.Context()) }()
	if err := pub.Publish(t.Context(), queue, m); err != nil {
		t.Fatal(err)
	}
}

func (s *site) topics(t *testing.T, do func(ctx context.Context, adm *kadm.Client) error) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.addrs...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := do(t.Context(), kadm.NewClient(cl)); err != nil {
		t.Fatal(err)
	}
}

// doing calls a function when a text appears on stderr, each once.
func doing(steps map[string]func()) world {
	var mu sync.Mutex
	return world{wrote: func(stderr string) {
		mu.Lock()
		defer mu.Unlock()
		for text, do := range steps {
			if strings.Contains(stderr, text) {
				delete(steps, text)
				do()
			}
		}
	}}
}

// What a move needs and does not find is refused with its reason and exit code 4; nothing is lost,
// and once the reason is gone the same command goes on.
func TestRefusalsOfAMove(t *testing.T) {
	t.Parallel()
	s := moving(t, amqp.Classic)
	cutover := []string{"cutover", "--yes", "--accept", "REPLY-TO"}

	endOld := consuming(t, s.old.Queue("orders.dlq", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}))
	endOld() // the dead letters are gone: they have a test of their own
	blocked := s.old.Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	idle, err := blocked.Open(t.Context(), transport.OpenOptions{Window: 1}) // it holds one message
	if err != nil {
		t.Fatal(err)
	}
	s.bridge(t, world{}, 4, "1 consumer", "run")
	s.bridge(t, interruptAt("old consumers: 1 still there"), 130, "next: longshore bridge cutover orders", cutover...)
	if err := idle.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.bridge(t, world{}, 0, "route orders: planned", "rollback", "--yes")

	endNew := consuming(t, s.newSide())
	s.bridge(t, world{}, 4, "has 1 member", cutover...)
	endNew()
	s.bridge(t, interruptAt("new consumers: start"), 130, "undo: longshore bridge rollback orders", cutover...)

	elsewhere := *s // a second host has the file, and not the state
	elsewhere.file = filepath.Join(t.TempDir(), "bridge.yaml")
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(elsewhere.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	both := doing(map[string]func(){"new consumers: start": func() {
		elsewhere.bridge(t, world{}, 4, "another cutover or rollback of this route is running", "rollback", "--yes")
		s.bridge(t, world{}, 4, "another cutover or rollback of this route is running", cutover...)
		endNew = consuming(t, s.newSide())
	}, "producers: switch": func() {}})
	both.signals = make(chan os.Signal, 1)
	wrote := both.wrote
	both.wrote = func(stderr string) {
		if wrote(stderr); strings.Contains(stderr, "producers: switch") && len(both.signals) == 0 {
			both.signals <- os.Interrupt
		}
	}
	s.bridge(t, both, 130, "next: longshore bridge cutover orders", cutover...)

	parked := &longshore.Message{ID: "o-parked", Body: []byte("p")}
	parked.Headers.Set("customer", "c-1")
	other := &longshore.Message{ID: "o-other", Body: []byte("q")}
	other.Headers.Set("customer", "c-2")
	s.put(t, "orders.parked", parked)
	s.put(t, "orders.parked", other)
	s.bridge(t, world{}, 4, "2 messages are parked", cutover...)
	s.bridge(t, world{}, 0, "key c-1: forwarded 1; still parked: 1 message of other keys", "unpark", "--key", "c-1")
	s.bridge(t, world{}, 1, "parked 1", "remaining")
	s.bridge(t, world{}, 0, "forwarded 1, parked 0", "unpark")
	s.bridge(t, world{}, 0, "route orders: drained", cutover...)
	s.put(t, "orders", &longshore.Message{ID: "late", Body: []byte("late")})
	s.bridge(t, world{}, 4, "not empty: 1 message has arrived", "finish", "--yes")
	s.bridge(t, world{}, 0, "route orders: drained", cutover...)
	s.bridge(t, world{}, 0, "missing 0, extra 0, changed 0", "verify")

	ghost := &kgo.Record{Topic: "orders", Value: []byte("x"), Headers: []kgo.RecordHeader{{Key: longshore.HeaderID, Value: []byte("ghost")}, {Key: longshore.HeaderVia, Value: []byte("00 a")}}}
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.addrs...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(t.Context(), ghost).FirstErr(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "differences")
	s.bridge(t, world{}, 3, "extra  ghost", "verify", "--out", out)
	s.inbox(t)
	if list, err := os.ReadFile(out); err != nil || string(list) != "extra\tghost\n" {
		t.Errorf("%v %q", err, list)
	}
	got := s.bridge(t, world{}, 0, "route orders: finished", "finish", "--yes")
	for _, line := range []string{"rabbitmqctl delete_queue orders\n", "rabbitmqctl delete_queue orders.parked", "rabbitmqctl delete_queue orders.dlq", "state.json"} {
		if !strings.Contains(got.out, line) {
			t.Errorf("finish does not name %q:\n%s", line, got.out)
		}
	}
	if strings.Contains(got.out, "shadow") {
		t.Errorf("finish names what does not exist:\n%s", got.out)
	}
	s.bridge(t, world{}, 4, "the old side given up", "rollback", "--yes")
	s.bridge(t, world{}, 4, "the move is finished", cutover...)
	endNew()
}

// inbox has verify count effects: the inbox knows some orders and not others.
func (s *site) inbox(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	with := *s
	with.file = filepath.Join(filepath.Dir(s.file), "inbox.yaml")
	if err := os.WriteFile(with.file, []byte(string(text)+"    inbox: {consumer: shop}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range []string{"CREATE TABLE longshore_inbox (consumer TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (consumer, id))",
		"INSERT INTO longshore_inbox VALUES ('shop', 'o-1', 1), ('shop', 'o-2', 1), ('other', 'o-3', 1), ('shop', 'never seen', 1)"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	with.bridge(t, world{}, 2, "no database", "verify", "--no-reread")
	with.bridge(t, world{}, 3, "effects  inbox of shop: 2 of ", "verify", "--no-reread", "--db", "sqlite:"+path)
	with.bridge(t, world{}, 3, "no effect  o-3\n", "verify", "--no-reread", "--db", "sqlite:"+path)
}

// A topic that was made again under its name is another one.
func TestAChangedTopologyIsRefused(t *testing.T) {
	t.Parallel()
	s := moving(t, amqp.Classic)
	s.bridge(t, interruptAt("new consumers: start"), 130, "next:", "cutover", "--yes", "--accept", "REPLY-TO")
	s.topics(t, func(ctx context.Context, adm *kadm.Client) error {
		if _, err := adm.DeleteTopics(ctx, "orders"); err != nil {
			return err
		}
		_, err := adm.CreateTopics(ctx, 3, 1, nil, "orders")
		return err
	})
	s.bridge(t, world{}, 4, "changed topology", "cutover", "--yes")
	s.bridge(t, world{}, 4, "changed topology", "rollback", "--yes")
}

// Exit codes 5 and 6, and Ctrl-C of a service and of a finite job.
func TestHowRunEnds(t *testing.T) {
	t.Parallel()
	s := moving(t, amqp.Classic)
	for _, args := range [][]string{{"run"}, {"run", "--standby"}, {"run", "--until", "empty"}} {
		got := s.bridge(t, world{}, 4, `target-missing: longshore: open kafka group "shop"`, args...)
		if strings.Contains(got.err, "standing by") || !strings.Contains(got.err, "help: create the target") {
			t.Error(got.err)
		}
	}
	s.topics(t, func(ctx context.Context, adm *kadm.Client) error {
		_, err := adm.CreateTopics(ctx, 3, 1, nil, "orders")
		return err
	})
	s.bridge(t, interruptAt("Ctrl-C drains"), 130, "undo: what was moved goes back with: longshore bridge rollback orders", "run", "--until", "empty")
	s.bridge(t, world{}, 0, "forwarded", "run", "--until", "empty")
	s.bridge(t, interruptAt("Ctrl-C drains"), 0, "forwarded 0", "run")
	s.bridge(t, world{}, 2, "--until never is not known", "run", "--until", "never")

	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "    to: ")
	aws := sqstest.New(t)
	cloud := fmt.Sprintf("brokers:\n  cloud: {url: %q, region: eu-west-1, access_key_id: A, secret_access_key: B, endpoint: %q}\n", "sqs://", aws.Config().Endpoint)
	strict := strings.Replace(before, "brokers:\n", cloud, 1) + "    to: {broker: cloud, queue: orders}\n    on_unsendable: stop\n"
	made, err := sqs.New(aws.Config()).Queue("orders", sqs.QueueConfig{Declare: sqs.Declare{Attributes: map[string]string{}}}).Open(t.Context(), transport.OpenOptions{Window: 1, Paused: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, []byte(strict), 0o600); err != nil {
		t.Fatal(err)
	}
	s.put(t, "orders", &longshore.Message{ID: "huge", Body: make([]byte, 1_200_000)})
	got := s.bridge(t, world{}, 5, "unsendable", "run")
	if !strings.Contains(got.err, `"huge"`) || !strings.Contains(got.err, "correct or remove the message") {
		t.Error(got.err)
	}
	for end := time.Now().Add(10 * time.Second); (world{}).run(t, "bridge", "remaining", "--quiet", "0s", "-c", s.file).code == 0 && time.Now().Before(end); {
		<-time.After(20 * time.Millisecond) // the broker takes a moment to put it back
	}
	s.bridge(t, world{}, 1, "ready 1", "remaining", "--quiet", "0s") // it is where it was

	aws.AllowKeys("another one") // credentials that are revoked, of the target
	for _, args := range [][]string{{"check"}, {"run"}, {"run", "--until", "empty"}, {"cutover", "--yes"}} {
		s.bridge(t, world{}, 6, "InvalidClientTokenId", args...)
	}
	s.server.SetPassword("guest", "another one") // and of the source
	s.server.Cut(nil)
	for _, verb := range []string{"check", "run", "remaining"} {
		got := s.bridge(t, world{}, 6, "error[auth]", verb)
		if !strings.Contains(got.err, "help:") {
			t.Error(got.err)
		}
	}
}

// mirror copies beside the old consumers into a shadow, which the live topic does not see.
func TestMirror(t *testing.T) {
	t.Parallel()
	s := moving(t, amqp.Classic)
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	bound := strings.Replace(string(text), "declare: {type: classic}", "declare: {type: classic, bindings: [{exchange: shop, key: order.placed, kind: topic}]}", 1)
	if err := os.WriteFile(s.file, []byte(bound), 0o600); err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	w := doing(map[string]func(){"Ctrl-C drains": func() {
		go func() {
			defer func() { signals <- os.Interrupt }()
			pub, err := s.old.Publisher(amqp.PublisherConfig{})
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = pub.Close(t.Context()) }()
			if err := pub.Publish(t.Context(), "shop/order.placed", &longshore.Message{ID: "copied"}); err != nil {
				t.Error(err)
			}
			shadow := kafka.New(s.addrs, kafka.Config{}).Group("look", []string{"orders.shadow"}, kafka.GroupConfig{})
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
				if left, err := shadow.Remaining(t.Context()); err == nil && left.Ready > 0 {
					return
				}
				<-time.After(20 * time.Millisecond)
			}
			t.Error("nothing arrived in the shadow")
		}()
	}})
	w.signals = signals
	s.bridge(t, w, 0, "forwarded 1, parked 0", "mirror")
	s.bridge(t, world{}, 1, "ready 20", "remaining", "--quiet", "0s")
	s.topics(t, func(ctx context.Context, adm *kadm.Client) error {
		topics, err := adm.ListTopics(ctx)
		if err == nil && topics.Has("orders") {
			t.Error("the live topic was made")
		}
		return err
	})
}

// Two moves between Kafka topics exclude each other, also from two hosts: each has its own state.
func TestTwoHostsMoveOneTopic(t *testing.T) {
	t.Parallel()
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "orders.parked"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	hosts := make([]*site, 2)
	for i := range hosts {
		hosts[i] = &site{file: filepath.Join(t.TempDir(), "bridge.yaml"), addrs: k.ListenAddrs()}
		text := fmt.Sprintf(`brokers:
  old: {url: "kafka://%s"}
bridge:
  orders:
    from: {broker: old, topic: orders, group: shop}
    to: {broker: old, topic: orders-2, group: shop-2, declare: {partitions: 1}}
    quiet: 200ms
`, strings.Join(k.ListenAddrs(), ","))
		if err := os.WriteFile(hosts[i].file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := interruptAt("new consumers: start")
	wrote, asked := w.wrote, false
	w.wrote = func(stderr string) {
		if !asked && strings.Contains(stderr, "new consumers: start") {
			asked = true
			hosts[1].bridge(t, world{}, 4, "another cutover or rollback of this route is running", "cutover", "--yes")
		}
		wrote(stderr)
	}
	hosts[0].bridge(t, w, 130, "next: longshore bridge cutover orders", "cutover", "--yes")
	hosts[0].bridge(t, interruptAt("new consumers: start"), 130, "next: longshore bridge cutover orders", "cutover", "--yes") // the lock is free again
}
