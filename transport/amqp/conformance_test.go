package amqp_test

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/transporttest"
)

func TestConformance(t *testing.T) {
	for _, like := range []struct {
		flavor amqptest.Flavor
		kind   amqp.QueueType
	}{{amqptest.V3_10, amqp.Classic}, {amqptest.V3_10, amqp.Quorum}, {amqptest.V4_3, amqp.Quorum}} {
		t.Run(like.flavor.String()+"/"+string(like.kind), func(t *testing.T) {
			transporttest.Run(t, embedded(like.flavor, like.kind).harness())
		})
	}
}

func TestConformanceOnRabbitMQ(t *testing.T) {
	brokertest.AMQP(t) // or the test is not run
	for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			h := real(kind).harness()
			h.Quiet = 400 * time.Millisecond
			transporttest.Run(t, h)
		})
	}
}

// lab makes brokers for the suite and remembers which source is on which.
type lab struct {
	kind QueueType
	make func(t testing.TB) *bench
	wrap func(q *amqp.Queue) transport.Source // nil: the queue is the source

	mu      sync.Mutex
	benches map[transport.Source]*bench
}

// QueueType keeps the lab readable.
type QueueType = amqp.QueueType

// bench is one broker as a test controls it.
type bench struct {
	url     string
	drop    func()
	latency func(d time.Duration)
	stall   func() (resume func())
	depth   func(t testing.TB, queue string) (ready, unsettled int)
}

func embedded(flavor amqptest.Flavor, kind QueueType) *lab {
	return &lab{kind: kind, benches: map[transport.Source]*bench{}, make: func(t testing.TB) *bench {
		srv := amqptest.New(t, amqptest.Config{Flavor: flavor})
		p, through := proxied(t, srv.URL)
		return &bench{url: through,
			drop:    func() { p.CutAll() },
			latency: func(d time.Duration) { p.Latency(d / 2) },
			stall:   func() func() { p.BlackHole(true); return func() { p.BlackHole(false) } },
			depth: func(_ testing.TB, queue string) (int, int) {
				q, _ := srv.Queue("/", queue)
				return q.Ready, q.Unacked
			}}
	}}
}

func real(kind QueueType) *lab {
	return &lab{kind: kind, benches: map[transport.Source]*bench{}, make: func(t testing.TB) *bench {
		direct := brokertest.AMQP(t)
		p, through := proxied(t, direct)
		return &bench{url: through,
			drop:    func() { p.CutAll() },
			latency: func(d time.Duration) { p.Latency(d / 2) },
			stall:   func() func() { p.BlackHole(true); return func() { p.BlackHole(false) } },
			depth:   func(t testing.TB, queue string) (int, int) { return ready(t, direct, queue), -1 }}
	}}
}

// proxied puts a fault proxy before a broker.
func proxied(t testing.TB, direct string) (*faultproxy.Proxy, string) {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal("the broker's URL cannot be read")
	}
	port := u.Port()
	if port == "" {
		port = "5672"
	}
	p := faultproxy.New(t, net.JoinHostPort(u.Hostname(), port))
	u.Host = p.Addr()
	return p, u.String()
}

// ready asks the broker how many messages wait in a queue.
func ready(t testing.TB, amqpURL, queue string) int {
	t.Helper()
	n := 0
	onChannel(t, amqpURL, func(ch *amqp091.Channel) error {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		n = q.Messages
		return err
	})
	return n
}

// onChannel runs f on a channel and connection of its own.
func onChannel(t testing.TB, amqpURL string, f func(ch *amqp091.Channel) error) {
	t.Helper()
	conn, err := amqp091.Dial(amqpURL)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err == nil {
		err = f(ch)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (l *lab) bench(src transport.Source) *bench {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.benches[src]
}

// source is a fresh queue with a dead-letter queue beside it.
func (l *lab) source(t testing.TB, change func(*amqp.QueueConfig)) transport.Source {
	b := l.make(t)
	name := transporttest.Name(t)
	cfg := amqp.QueueConfig{Declare: amqp.Declare{Type: l.kind,
		Arguments: amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name + ".dead"}},
		BrowseCounts: true}
	if change != nil {
		change(&cfg)
	}
	onChannel(t, b.url, func(ch *amqp091.Channel) error {
		args := amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name + ".dead", "x-queue-type": string(l.kind)}
		if _, err := ch.QueueDeclare(name+".dead", true, false, false, false, nil); err != nil {
			return err
		}
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		return err
	})
	queue := amqp.New(b.url, amqp.Config{}).Queue(name, cfg)
	var src transport.Source = queue
	if l.wrap != nil {
		src = l.wrap(queue)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.benches[src] = b
	return src
}

func (l *lab) harness() transporttest.Harness {
	name := func(t testing.TB, src transport.Source) string {
		return as[transport.Describer](t, src).Describe().Name
	}
	h := transporttest.Harness{
		Operations: []longshore.OperationKind{longshore.OperationAck, longshore.OperationNack},
		Parallel:   true, // every source has a server or a vhost, and a proxy, of its own
		Patience:   20 * time.Second,
		Source:     func(t testing.TB) transport.Source { return l.source(t, nil) },
		Batched: func(t testing.TB) transport.Source {
			return l.source(t, func(c *amqp.QueueConfig) { c.SettleLinger = time.Hour })
		},
		Windowed: func(t testing.TB) (transport.Source, int) {
			return l.source(t, func(c *amqp.QueueConfig) { c.Prefetch = 5 }), 5
		},
		Missing: func(t testing.TB) transport.Source {
			return amqp.New(l.make(t).url, amqp.Config{}).Queue("missing", amqp.QueueConfig{})
		},
		BadAuth: func(t testing.TB) transport.Source {
			return amqp.New(l.make(t).url, amqp.Config{User: "guest", Password: transport.Static("wrong")}).Queue("any", amqp.QueueConfig{})
		},
		Drop:    func(_ testing.TB, src transport.Source) { l.bench(src).drop() },
		Latency: func(_ testing.TB, src transport.Source, d time.Duration) { l.bench(src).latency(d) },
		Stall:   func(_ testing.TB, src transport.Source) func() { return l.bench(src).stall() },
		Depth: func(t testing.TB, src transport.Source) (int, int) {
			return l.bench(src).depth(t, name(t, src))
		},
		DeadLettered: func(t testing.TB, src transport.Source) int {
			n, _ := l.bench(src).depth(t, name(t, src)+".dead")
			return n
		},
		UserID: "guest",
	}
	if l.kind == amqp.Quorum {
		h.LossCounts = true
	}
	return h
}
