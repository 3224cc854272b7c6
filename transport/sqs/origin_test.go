package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// border is an HTTP client that notes the hosts that are asked, and lets nothing out to
// others than its own.
type border struct {
	next *sqstest.Client
	home map[string]bool

	mu      sync.Mutex
	foreign []string
}

func (b *border) Do(r *http.Request) (*http.Response, error) {
	if !b.home[r.URL.Host] {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.foreign = append(b.foreign, r.URL.Host)
		return nil, fmt.Errorf("no route to %s", r.URL.Host)
	}
	return b.next.Do(r)
}

func (b *border) check(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.foreign) > 0 {
		t.Errorf("other hosts were asked: %v", b.foreign)
	}
}

// local is a broker without an endpoint, of a process that knows local addresses only.
func local(t *testing.T, s *sqstest.Server) (*sqs.Broker, *border) {
	t.Helper()
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_PROFILE", "AWS_CA_BUNDLE"} {
		t.Setenv(name, "")
	}
	net := &border{next: s.HTTPClient(), home: map[string]bool{"localhost:4566": true}}
	return sqs.New(sqs.Config{Region: "us-east-1", HTTPClient: net, Credentials: sqs.Keys("test", transport.Static("test"), transport.Secret{})}), net
}

const localOrders = "http://localhost:4566/000000000000/orders"

// F-N14: the dead-letter queue of a source with a local URL is given by name or by ARN: it
// lies beside the source, and so does what is put back.
func TestDeadLetterLiesBesideItsSource(t *testing.T) {
	for _, by := range []string{"name", "ARN"} {
		s := sqstest.New(t, sqstest.Config{NoPort: true})
		broker, net := local(t, s)
		s.CreateQueue(t, "dead", nil)
		s.CreateQueue(t, "orders", nil)
		to := map[string]string{"name": "dead", "ARN": s.ARN("dead")}[by]
		src := broker.Queue(localOrders, sqs.QueueConfig{})
		_, stop := run(t, src, func(context.Context, *longshore.Delivery) error { return errBad },
			container.Config{Redelivery: container.Redelivery{MaxAttempts: 1}, DeadLetter: container.DeadLetter{To: to}})
		pub, self, err := src.(transport.Outlet).Publisher(t.Context()) //nolint:errcheck // it is one
		must(t, err)
		must(t, pub.Publish(t.Context(), self, &longshore.Message{Body: []byte("a")}))
		must(t, pub.Publish(t.Context(), "orders", &longshore.Message{Body: []byte("b")})) // publish --to NAME
		until(t, 10*time.Second, "both dead letters", func() bool { return state(t, s, "dead").Visible == 2 })
		stop()
		must(t, pub.Close(t.Context()))
		other, net2 := local(t, s)
		res, err := dlq.Replay(t.Context(), dlq.Job{Source: other.Queue("http://localhost:4566/000000000000/dead", sqs.QueueConfig{}), Quiet: time.Second})
		must(t, err)
		if res.Done != 2 || state(t, s, "orders").Visible != 2 {
			t.Errorf("by %s: %+v, %+v", by, res, state(t, s, "orders"))
		}
		net.check(t)
		net2.check(t)
	}
}

// F-N14: a broker without an endpoint whose queues are all on one host that is not AWS
// finds names there, for a publisher and for further queues.
func TestNamesAreFoundWhereTheOtherQueuesAre(t *testing.T) {
	s := sqstest.New(t, sqstest.Config{NoPort: true})
	broker, net := local(t, s)
	s.CreateQueue(t, "orders", nil)
	s.CreateQueue(t, "dead", nil)
	orders := broker.Queue(localOrders, sqs.QueueConfig{})
	dead := broker.Queue("dead", sqs.QueueConfig{})
	for _, src := range []transport.Source{orders, dead} {
		must(t, src.(transport.Prober).Probe(t.Context())) //nolint:errcheck // it is one
	}
	publish(t, broker, "dead", "", "a")
	publish(t, broker, s.ARN("dead"), "", "b")
	if n, err := broker.Depth(t.Context(), "dead"); err != nil || n.Visible != 2 {
		t.Errorf("depth %+v, %v", n, err)
	}
	net.check(t)
}

// F-N14: where queues are on several hosts a name is refused; one that is on AWS leaves
// names to the region's endpoint.
func TestNamesAmongQueuesOfSeveralHosts(t *testing.T) {
	s := sqstest.New(t, sqstest.Config{NoPort: true})
	broker, net := local(t, s)
	broker.Queue(localOrders, sqs.QueueConfig{})
	broker.Queue("http://localhost:4567/000000000000/orders", sqs.QueueConfig{})
	err := broker.Queue("dead", sqs.QueueConfig{}).(transport.Checker).Check() //nolint:errcheck // it is one
	if !errors.Is(err, longshore.CodeBadAddress) {
		t.Errorf("a name among queues of two hosts: %v", err)
	}
	p, err := broker.Publisher(sqs.PublisherConfig{})
	must(t, err)
	if err := p.Publish(t.Context(), "dead", &longshore.Message{Body: []byte("a")}); !errors.Is(err, longshore.CodeBadAddress) {
		t.Errorf("publish to a name among queues of two hosts: %v", err)
	}
	must(t, p.Close(t.Context()))
	net.check(t)

	mixed, out := local(t, s)
	mixed.Queue(localOrders, sqs.QueueConfig{})
	mixed.Queue("arn:aws:sqs:eu-west-1:111122223333:orders", sqs.QueueConfig{})
	_ = mixed.Queue("dead", sqs.QueueConfig{}).(transport.Prober).Probe(t.Context()) //nolint:errcheck // it is one
	if len(out.foreign) == 0 || out.foreign[0] != "sqs.us-east-1.amazonaws.com" {
		t.Errorf("asked %v", out.foreign)
	}
}

func TestBeside(t *testing.T) {
	for _, tc := range []struct{ queue, to, want string }{
		{"orders", "dead", "dead"},
		{localOrders, "dead", "http://localhost:4566/000000000000/dead"},
		{localOrders + ".fifo", "dead.fifo", "http://localhost:4566/000000000000/dead.fifo"},
		{"https://sqs.eu-west-1.amazonaws.com/111122223333/orders", "dead", "https://sqs.eu-west-1.amazonaws.com/111122223333/dead"},
		{"arn:aws:sqs:eu-west-1:111122223333:orders", "dead", "arn:aws:sqs:eu-west-1:111122223333:dead"},
		{localOrders, "https://h/1/dead", "https://h/1/dead"},
		{localOrders, "arn:aws:sqs:eu-west-1:111122223333:dead", "arn:aws:sqs:eu-west-1:111122223333:dead"},
		{localOrders, "no name", "no name"},
		{"", "dead", "dead"},
	} {
		if got := sqs.Beside(tc.queue, tc.to); got != tc.want {
			t.Errorf("%s beside %s is %s, want %s", tc.to, tc.queue, got, tc.want)
		}
	}
}
