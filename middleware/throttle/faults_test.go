package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

func send(t *testing.T, src transport.Source, msgs ...*longshore.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, ok := src.(transport.Outlet)
	if !ok {
		t.Fatal("the source cannot publish")
	}
	p, self, err := out.Publisher(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(ctx) }()
	if err := p.Publish(ctx, self, msgs...); err != nil {
		t.Fatal(err)
	}
}

// F-F01: messages that never reach the handler, or leave it in any way, take no
// permit with them, in each order of middlewares.
func TestPermitsComeBack(t *testing.T) {
	busy := longshore.MiddlewareFunc(func(next longshore.Handler) longshore.Handler {
		return handle(func(ctx context.Context, d *longshore.Delivery) error {
			if string(d.Body) == "busy" {
				return longshore.Release(errors.New("the lock is busy"), time.Hour)
			}
			return next.Handle(ctx, d)
		})
	})
	decode, dedupe := middleware.Decode, middleware.Dedupe
	chains := map[string]func(*throttle.Keyed) []longshore.Middleware{
		"inside": func(perKey *throttle.Keyed) []longshore.Middleware {
			return []longshore.Middleware{decode(middleware.DecodeConfig{}), dedupe(middleware.DedupeConfig{}), busy, perKey}
		},
		"outside": func(perKey *throttle.Keyed) []longshore.Middleware {
			return []longshore.Middleware{perKey, decode(middleware.DecodeConfig{}), dedupe(middleware.DedupeConfig{}), busy}
		},
		"between": func(perKey *throttle.Keyed) []longshore.Middleware {
			return []longshore.Middleware{decode(middleware.DecodeConfig{}), perKey, busy, dedupe(middleware.DedupeConfig{})}
		},
	}
	bad := map[string]longshore.Message{
		"undecodable":      {Body: []byte("{")},
		"unknown encoding": {Body: []byte("1"), ContentEncoding: "br"},
		"broken gzip":      {Body: []byte("1"), ContentEncoding: "gzip"},
		"duplicate":        {Headers: longshore.Headers{{Name: longshore.HeaderID, Value: "same"}}, Body: []byte("1")},
		"busy":             {Body: []byte("busy")},
		"panic":            {Body: []byte("2")},
	}
	for chain, made := range chains {
		for name, m := range bad {
			t.Run(chain+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := memory.New(memory.Config{})
					limit := throttle.NewPermits(3)
					perKey := throttle.PerKey(3, func(*longshore.Delivery) string { return "all" })
					mws := made(perKey)
					var good atomic.Int32
					c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.Typed(longshore.JSON{}, func(_ context.Context, n int, _ *longshore.Delivery) error {
						switch n {
						case 2:
							panic("boom")
						case 3:
							good.Add(1)
						}
						return nil
					}), container.Config{Throttle: limit, Middleware: mws, DeadLetter: container.DeadLetter{To: "dead"}, Redelivery: container.Redelivery{MaxAttempts: 1}})
					for range 9 {
						one := m
						publish(t, b, "q", &one)
					}
					wait(time.Second)
					publish(t, b, "q", &longshore.Message{ID: "good", Body: []byte("3")})
					wait(time.Second)
					if st := limit.State(); good.Load() != 1 || st.InUse != 0 || perKey.Keys() != 0 {
						t.Errorf("good handled %d times, %d permits out, %d keys", good.Load(), st.InUse, perKey.Keys())
					}
					stop(t, c)
				})
			})
		}
	}
}

// F-F02: what a throttle holds back on Kafka does not outlive the assignment: after
// members have come and gone while it opened and shut, everything flows.
func TestThrottleOverRebalances(t *testing.T) {
	t.Parallel()
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	limit := throttle.NewPermits(5)
	var mu sync.Mutex
	seen := map[string]int{}
	member := func() *container.ListenerContainer {
		src := kafka.New(k.ListenAddrs(), kafka.Config{}).Group("billing", []string{"orders"}, kafka.GroupConfig{})
		return start(t, src, handle(func(_ context.Context, d *longshore.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			seen[string(d.Body)]++
			return nil
		}), container.Config{Throttle: limit, DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}})
	}
	producer := kafka.New(k.ListenAddrs(), kafka.Config{}).Group("billing", []string{"orders"}, kafka.GroupConfig{})
	stays := member()
	sent := 0
	for round := range 4 {
		msgs := keyed(200, 20)
		for i, m := range msgs {
			m.Body = fmt.Append(nil, sent+i)
		}
		send(t, producer, msgs...)
		sent += len(msgs)
		limit.SetPermits([]int{0, 3}[round%2])
		guest := member()
		for range 4 {
			limit.SetPermits(rand.IntN(3))
			eventually(t, "a moment", after(10*time.Millisecond))
		}
		stop(t, guest)
	}
	limit.Unlimit()
	eventually(t, "everything handled", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) == sent
	})
	eventually(t, "nothing waits", func() bool {
		ok, err := stays.Idle(t.Context())
		return ok && err == nil
	})
	if st := stays.Stats(); !st.Ready || limit.State().InUse != 0 {
		t.Errorf("%+v", st)
	}
	stop(t, stays)
}

func after(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return !time.Now().Before(end) }
}

// F-F05: a broker that gives up after three deliveries never gets to: neither a rate,
// nor permits of 0 for a while, nor both cost a delivery. With 0 permits nobody
// consumes.
func TestThrottleCostsNoDelivery(t *testing.T) {
	t.Parallel()
	t.Run("quorum queue", func(t *testing.T) {
		t.Parallel()
		srv := amqptest.New(t, amqptest.Config{})
		src := amqp.New(srv.URL, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum,
			Arguments: amqp091.Table{"x-delivery-limit": int32(3), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}}})
		throttled(t, src, func() bool {
			q, _ := srv.Queue("/", "orders")
			return len(q.Consumers) == 0
		})
	})
	t.Run("sqs", func(t *testing.T) {
		t.Parallel()
		cfg := sqstest.New(t).Config()
		open(t, sqs.New(cfg).Queue("dead", sqs.QueueConfig{Declare: sqs.Declare{Attributes: map[string]string{}}}))
		src := sqs.New(cfg).Queue("orders", sqs.QueueConfig{Declare: sqs.Declare{Attributes: map[string]string{"VisibilityTimeout": "30",
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":"3"}`}}})
		throttled(t, src, nil)
	})
}

// open opens and closes a source, so that its queue exists.
func open(t *testing.T, src transport.Source) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := src.Open(ctx, transport.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func throttled(t *testing.T, src transport.Source, gone func() bool) {
	open(t, src)
	send(t, src, numbered(500)...)
	limit := throttle.NewRate(200)
	limit.SetPermits(4)
	var mu sync.Mutex
	seen := map[string]int{}
	h := handle(func(_ context.Context, d *longshore.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		seen[string(d.Body)]++
		if d.Attempt != 1 || d.Origin.Redelivered {
			t.Errorf("%s is attempt %d, redelivered %v", d.Body, d.Attempt, d.Origin.Redelivered)
		}
		return nil
	})
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(seen)
	}
	c := start(t, src, h, container.Config{Throttle: limit, Redelivery: container.Redelivery{MaxAttempts: 3}})
	for _, n := range []int{50, 150, 300} {
		eventually(t, fmt.Sprint(n, " handled"), func() bool { return count() >= n })
		limit.SetPermits(0)
		eventually(t, "what runs ends", func() bool { return limit.State().InUse == 0 })
		if gone != nil {
			eventually(t, "nobody consumes", gone)
		}
		at := count()
		eventually(t, "a moment", after(200*time.Millisecond))
		if n := count(); n != at {
			t.Errorf("%d were handled with 0 permits", n-at)
		}
		limit.SetPermits(4)
	}
	eventually(t, "all handled", func() bool { return count() == 500 })
	stop(t, c)
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was started %d times", id, n)
		}
	}
}
