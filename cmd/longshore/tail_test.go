package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// bindingsOf is a management API that knows the queue orders, bound to a topic exchange and to one
// that shares its messages out.
func bindingsOf(t *testing.T, kind string) string {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, known := map[string]string{
			"/api/queues/%2F/orders": `{"name":"orders","type":"` + kind + `"}`,
			"/api/queues/%2F/orders/bindings": `[{"source":"","routing_key":"orders"},{"source":"shop","routing_key":"order.#","arguments":{}},
				{"source":"sharded","routing_key":"1"}]`,
			"/api/exchanges/%2F/shop":    `{"type":"topic"}`,
			"/api/exchanges/%2F/sharded": `{"type":"x-consistent-hash"}`,
		}[r.URL.EscapedPath()]
		if !known {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(api.Close)
	return api.URL
}

// whenFollowing runs do once tail says that it follows.
func whenFollowing(t *testing.T, w world, do func()) world {
	var once sync.Once
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	w.wrote = func(stderr string) {
		if strings.Contains(stderr, "Ctrl-C ends it") {
			once.Do(func() { running.Go(do) })
		}
	}
	return w
}

// Copies of what goes through an exchange are shown, and the queue keeps its messages.
func TestTailRabbitMQ(t *testing.T) {
	server := amqptest.New(t, amqptest.Config{})
	declareOn(t, server, "orders", nil)
	bind(t, server, "orders", "shop", "order.#")
	target := server.URL + "?queue=orders"
	w := world{env: map[string]string{"AMQP_MANAGEMENT": bindingsOf(t, "classic")}}
	got := whenFollowing(t, w, func() {
		for _, body := range []string{"one", "two"} {
			if out := (world{in: body}).run(t, "publish", target, "--to", "shop/order.new", "--key", "c-91"); out.code != 0 {
				t.Errorf("%+v", out)
			}
		}
	}).run(t, "tail", target, "-n", "2", "--format", "%k %v\\n")
	if got.code != 0 || got.out != "c-91 one\nc-91 two\n" {
		t.Errorf("%+v", got)
	}
	if want := `note: messages that reach the queue directly, without an exchange or through x-consistent-hash exchange "sharded" are not seen`; !strings.Contains(got.err, want) {
		t.Errorf("%q", got.err)
	}
	if got := (world{}).run(t, "peek", target+"&declare=classic", "--format", "%v "); got.out != "one \ntwo \n" {
		t.Errorf("the queue has %+v", got)
	}
	// An exchange needs no management API; Ctrl-C is the way to end it.
	w = world{signals: make(chan os.Signal, 1)}
	got = whenFollowing(t, w, func() { w.signals <- os.Interrupt }).run(t, "tail", server.URL+"?exchange=shop&keys=order.%23")
	if got.code != 0 || got.out != "" {
		t.Errorf("%+v", got)
	}
}

// Where messages cannot be copied, tail says why.
func TestTailSaysWhyNot(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	server := amqptest.New(t, amqptest.Config{})
	declareOn(t, server, "orders", nil)
	queues := sqstest.New(t)
	for name, c := range map[string]struct {
		target, want string
		code         int
	}{
		"no management": {server.URL + "?queue=orders", "only through its management API", 1},
		"no queue":      {server.URL + "?queue=absent", "no such queue", 1},
		"sqs":           {"sqs://orders?region=eu-west-1&endpoint=" + queues.URL, "SQS hides each message", 1},
	} {
		w := world{}
		if name == "no queue" {
			w.env = map[string]string{"AMQP_MANAGEMENT": bindingsOf(t, "quorum")}
		}
		if got := w.run(t, "tail", c.target); got.code != c.code || got.out != "" || !strings.Contains(got.err, c.want) || !strings.Contains(got.err, "help: ") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// On Kafka what was written before is not shown, and no group appears.
func TestTailKafka(t *testing.T) {
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	target := "kafka://" + strings.Join(k.ListenAddrs(), ",") + "/orders"
	if got := (world{in: "before"}).run(t, "publish", target); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	got := whenFollowing(t, world{}, func() {
		if got := (world{in: "1\n2\n3\n"}).run(t, "publish", target, "--lines", "--key", "c"); got.code != 0 {
			t.Errorf("%+v", got)
		}
	}).run(t, "tail", target+"?group=billing", "-n", "3", "--format", "%v ")
	if got.code != 0 || got.out != "1 \n2 \n3 \n" {
		t.Errorf("%+v", got)
	}
}

// bind declares a topic exchange that leads to a queue.
func bind(t *testing.T, server *amqptest.Server, queue, exchange, key string) {
	t.Helper()
	conn, err := amqp091.Dial(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // the test is over
	ch, err := conn.Channel()
	if err == nil {
		err = ch.ExchangeDeclare(exchange, "topic", true, false, false, false, nil)
	}
	if err == nil {
		err = ch.QueueBind(queue, key, exchange, false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}
