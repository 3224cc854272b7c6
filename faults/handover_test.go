package faults

import (
	"context"
	"maps"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/amqp"
)

// Two instances share a single active queue and are restarted in turns, always the
// active one, while it is busy: the other goes on exactly where it has stopped, and no
// handler is cut off. Cancelling the consumer instead of closing its channel would give
// the other what is newer first.
func TestRestartsOfTheActiveConsumerKeepTheOrderOfAKey(t *testing.T) {
	t.Parallel()
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		url, l := brokertest.AMQP(t), oracle.New()
		args = maps.Clone(args)
		args["x-single-active-consumer"] = true
		q := newRabbitQueue(t, url, "orders", args)
		const total, keys, rounds = 1200, 5, 6
		work := func(ctx context.Context, d *longshore.Delivery) error {
			end := l.Begin(string(d.Body), string(d.Key))
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
			end(d.Owned() && ctx.Err() == nil)
			return ctx.Err()
		}
		instance := func() *container.ListenerContainer {
			return consumeFrom(t, amqp.New(url, amqp.Config{}).Queue("orders", amqp.QueueConfig{SingleActive: true}),
				container.Config{Workers: container.Workers{Min: 4, Max: 4}, Order: container.ByKey}, work)
		}
		instances := [2]*container.ListenerContainer{instance(), instance()} // the first is the active one
		for round := range rounds {
			q.publish(l, round*total/rounds, total/rounds, keys)
			eventually(t, 20*time.Second, "some were handled", func() bool { return l.Done() > (round+1)*80 })
			if err := instances[round%2].Stop(t.Context()); err != nil {
				t.Errorf("stop: %v", err)
			}
			instances[round%2] = instance()
		}
		eventually(t, 60*time.Second, "all are done", func() bool { return l.Done() == total })
		check(t, l, oracle.Allow{Ordered: true})
	})
}

// Instances of different sizes take a single active queue over within moments: the
// second one has worked off little of what the first had in hand when it stops too. A
// quorum queue lines up what the second returns behind the rest of the first's, so each
// of them has to have all that the one before it returned.
//
// F-N35
func TestSuccessiveHandOversKeepTheOrderOfAKey(t *testing.T) {
	t.Parallel()
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		url, l := brokertest.AMQP(t), oracle.New()
		args = maps.Clone(args)
		args["x-single-active-consumer"] = true
		q := newRabbitQueue(t, url, "orders", args)
		const total, keys = 5000, 50
		q.publish(l, 0, total, keys)
		proxy, purl := proxied(t, url)
		var instances []*container.ListenerContainer
		for _, workers := range []int{64, 2, 64, 3, 32} {
			instances = append(instances, consumeFrom(t, amqp.New(purl, amqp.Config{}).Queue("orders", amqp.QueueConfig{SingleActive: true}),
				container.Config{Workers: container.Workers{Min: workers, Max: workers}, Order: container.ByKey, Reopen: quickly}, paced(l, 25*time.Millisecond)))
		}
		for _, c := range instances[:4] { // each of them soon after it has become the active one
			before := l.Done()
			eventually(t, 20*time.Second, "some were handled", func() bool { return l.Done() > before+4 || l.Done() == total })
			if err := c.Stop(t.Context()); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
		before := 0
		for range 4 { // and the link of the last one is cut
			before = l.Done()
			eventually(t, 20*time.Second, "some were handled", func() bool { return l.Done() > before+4 || l.Done() == total })
			proxy.CutAll()
		}
		if before == total {
			t.Error("all were done before the last cut: it shows nothing")
		}
		eventually(t, 60*time.Second, "all are done", func() bool { return l.Done() == total })
		check(t, l, oracle.Allow{Ordered: true, Twice: 4 * 64})
	})
}

// paced records what it handles and takes so long over each.
func paced(l *oracle.Ledger, each time.Duration) longshore.HandlerFunc {
	return func(ctx context.Context, d *longshore.Delivery) error {
		end := l.Begin(string(d.Body), string(d.Key))
		select {
		case <-time.After(each):
		case <-ctx.Done():
		}
		end(d.Owned() && ctx.Err() == nil)
		return ctx.Err()
	}
}
