package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/amqp"
)

// quickly reopens without long waits, so that tests are short.
var quickly = container.Backoff{Initial: 50 * time.Millisecond, Max: 500 * time.Millisecond}

// F-B01: the link breaks again in any step of coming back.
func TestRecoveryThatBreaksInAnyStepStartsAgain(t *testing.T) {
	t.Parallel()
	url := brokertest.AMQP(t)
	for step := 1; step <= 8; step++ {
		t.Run(fmt.Sprintf("cut at method %d", step), func(t *testing.T) {
			proxy, purl := proxied(t, url)
			broker := amqp.New(purl, amqp.Config{})
			l := oracle.New()
			var queues []*rabbitQueue
			for i := range 4 {
				name := fmt.Sprintf("orders-%d-%d", step, i)
				q := newRabbitQueue(t, url, name, nil)
				queues = append(queues, q)
				consumeFrom(t, broker.Queue(name, amqp.QueueConfig{}), container.Config{Reopen: quickly}, record(l))
			}
			proxy.CutAtClientMethod(step) // each new connection, until it is taken back
			proxy.CutAll()
			eventually(t, 10*time.Second, "a connection was cut again", func() bool { return proxy.Cuts() > 0 })
			proxy.CutAtClientMethod(0)
			for i, q := range queues {
				q.publish(l, i*10, 10, 0)
			}
			eventually(t, 6*time.Second, "all four consume", func() bool { return l.Done() == 40 })
			for _, q := range queues {
				eventually(t, 2*time.Second, "exactly one consumer on "+q.name, func() bool { _, n := q.depth(); return n == 1 })
			}
			// A connection that was armed may be cut while its acks are under way.
			check(t, l, oracle.Allow{Twice: 40})
		})
	}
}

// F-B02: the broker is down at the first start.
func TestBrokerDownAtFirstStartIsNotMissedSilently(t *testing.T) {
	url, l := brokertest.AMQP(t), oracle.New()
	q := newRabbitQueue(t, url, "orders", nil)
	proxy, purl := proxied(t, url)
	proxy.Refuse()
	c := newContainer(t, amqp.New(purl, amqp.Config{}).Queue("orders", amqp.QueueConfig{}), container.Config{Reopen: quickly}, record(l))
	if err := c.Start(t.Context()); err != nil {
		t.Fatalf("an unreachable broker must not fail the start: %v", err)
	}
	healthy := newRabbitQueue(t, url, "healthy", nil)
	consume(t, url, "healthy", container.Config{}, record(l))
	healthy.publish(l, 100, 10, 0)
	eventually(t, 5*time.Second, "the other listener works meanwhile", func() bool { return l.Done() == 10 })
	if s := c.State(); s != container.StateRecovering && s != container.StateStarting {
		t.Errorf("state %v with a broker that is down", s)
	}
	if err := proxy.Listen(); err != nil {
		t.Fatal(err)
	}
	q.publish(l, 0, 10, 0)
	eventually(t, 6*time.Second, "attached when the broker appeared", func() bool { return l.Done() == 20 })

	proxy.Refuse()
	proxy.CutAll()
	strict := newContainer(t, amqp.New(purl, amqp.Config{}).Queue("orders", amqp.QueueConfig{}), container.Config{Reopen: quickly, WaitForBroker: true, Name: "strict"}, record(l))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := strict.Start(ctx); !errors.Is(err, longshore.CodeUnreachable) {
		t.Errorf("WaitForBroker: %v, want code unreachable", err)
	}
}

// F-B03: one handler outlasts the broker's acknowledgement timeout.
func TestAckTimeoutIsNoticedWithoutAnyHandlerReturning(t *testing.T) {
	t.Parallel()
	node := brokertest.FaultNode(t)
	node.ConsumerTimeout(4 * time.Second)
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		l := oracle.New()
		name := t.Name()[len("TestAckTimeoutIsNoticedWithoutAnyHandlerReturning/"):]
		slow := newRabbitQueue(t, node.URL, "slow-"+name, args)
		quick := newRabbitQueue(t, node.URL, "quick-"+name, args)
		broker := amqp.New(node.URL, amqp.Config{})
		if name == "classic" && slow.since(4, 3) {
			neverTakenBack(t, broker, slow)
			return
		}

		lostCause, lateAck := make(chan error, 1), make(chan error, 1)
		var calls atomic.Int64
		c := consumeFrom(t, broker.Queue(slow.name, amqp.QueueConfig{}), container.Config{Reopen: quickly, Settle: container.SettleManual},
			func(ctx context.Context, d *longshore.Delivery) error {
				if calls.Add(1) > 1 {
					l.Begin(string(d.Body), "")(true)
					return d.Ack(context.WithoutCancel(ctx))
				}
				<-ctx.Done()
				lostCause <- context.Cause(ctx)
				lateAck <- d.Ack(context.WithoutCancel(ctx))
				return nil
			})
		slow.publish(l, 0, 1, 0)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		t.Cleanup(wg.Wait)
		end := sync.OnceFunc(func() { close(stop) })
		t.Cleanup(end)
		consumeFrom(t, broker.Queue(quick.name, amqp.QueueConfig{}), container.Config{Reopen: quickly}, record(l))
		wg.Go(func() {
			for i := 1; ; i++ {
				quick.publish(l, i, 1, 0)
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
		select {
		case cause := <-lostCause:
			if !errors.Is(cause, longshore.ErrLost) {
				t.Errorf("cause %v, want ErrLost", cause)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the timeout was not noticed")
		}
		if err := <-lateAck; !errors.Is(err, longshore.ErrLost) {
			t.Errorf("late ack: %v, want ErrLost", err)
		}
		eventually(t, 10*time.Second, "it was seen again", func() bool { return calls.Load() >= 2 })
		end()
		wg.Wait()
		published := l.Report().Published
		eventually(t, 10*time.Second, "everything is handled", func() bool { return l.Done() == published })
		if s := c.Stats(); s.Lost != 1 {
			t.Errorf("lost counter %d, want 1", s.Lost)
		}
		check(t, l, oracle.Allow{})
	})
}

// neverTakenBack holds a delivery beyond the timeout: from RabbitMQ 4.3 on classic
// queues have none.
func neverTakenBack(t *testing.T, broker *amqp.Broker, q *rabbitQueue) {
	l, held := oracle.New(), make(chan *longshore.Delivery, 1)
	c := consumeFrom(t, broker.Queue(q.name, amqp.QueueConfig{}), container.Config{Reopen: quickly, Settle: container.SettleManual},
		func(_ context.Context, d *longshore.Delivery) error { held <- d; return nil })
	q.publish(l, 0, 1, 0)
	d := <-held
	holds(t, 12*time.Second, "the delivery is ours", func() bool { return d.Owned() && c.State() == container.StateRunning })
	if err := d.Ack(t.Context()); err != nil {
		t.Errorf("ack: %v", err)
	}
}

// F-B04: slow handlers, the link drops and is back before they end.
func TestSettlementNeverReachesAnotherChannel(t *testing.T) {
	url, l := brokertest.AMQP(t), oracle.New()
	q := newRabbitQueue(t, url, "orders", nil)
	proxy, purl := proxied(t, url)
	release := make(chan struct{})
	var running atomic.Int64
	c := consumeFrom(t, amqp.New(purl, amqp.Config{}).Queue("orders", amqp.QueueConfig{}),
		container.Config{Workers: container.Workers{Min: 40, Max: 40}, Lookahead: -1, Reopen: quickly},
		func(_ context.Context, d *longshore.Delivery) error {
			running.Add(1)
			<-release
			// Whether this effect counts is what Owned answers: the stale ones are not done.
			l.Begin(string(d.Body), "")(d.Owned())
			return nil
		})
	q.publish(l, 0, 20, 0)
	eventually(t, 10*time.Second, "20 handlers run", func() bool { return running.Load() == 20 })
	proxy.CutAll()
	eventually(t, 10*time.Second, "subscribed again", func() bool { _, n := q.depth(); return n >= 1 && c.State() == container.StateRunning })
	q.publish(l, 20, 20, 0)
	eventually(t, 10*time.Second, "20 others run on the new channel", func() bool { return running.Load() >= 40 })
	close(release)
	eventually(t, 20*time.Second, "all 40 are done", func() bool { return l.Done() == 40 })
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if s := c.Stats(); s.Lost != 20 || total(s.Reopens) != 1 {
		t.Errorf("lost %d (want 20), reopens %d (want 1: no 406)", s.Lost, total(s.Reopens))
	}
	if ready, _ := q.depth(); ready != 0 {
		t.Errorf("%d are left", ready)
	}
	check(t, l, oracle.Allow{})
}

// F-B05: the dead-letter publisher meets a dead link, then no route.
func TestSourceStaysUntilTheDeadLetterIsConfirmed(t *testing.T) {
	t.Parallel()
	url, l := brokertest.AMQP(t), oracle.New()
	q := newRabbitQueue(t, url, "orders", nil)
	q.publish(l, 0, 5, 0)
	proxy, purl := proxied(t, url)
	via, err := amqp.New(purl, amqp.Config{}).Publisher(amqp.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = via.Close(context.Background()) }() // the container does not own a publisher it was given
	proxy.BlackHole(true)
	c := consume(t, url, "orders", container.Config{
		DeadLetter: container.DeadLetter{To: "orders.dlq", Via: via},
		Redelivery: container.Redelivery{MaxAttempts: 1, Backoff: container.Backoff{Initial: 200 * time.Millisecond, Max: time.Second}},
	}, func(context.Context, *longshore.Delivery) error { return errors.New("always") })
	holds(t, 5*time.Second, "nothing is settled while the destination does not confirm", func() bool { return deadLettered(c) == 0 })
	proxy.BlackHole(false)
	proxy.CutAll()
	// The queue does not exist yet: returned as unroutable although confirmed.
	eventually(t, 20*time.Second, "unroutable is an error", func() bool { return c.Stats().DeadLetterFailures > 0 })
	if n := deadLettered(c); n != 0 {
		t.Errorf("%d dead-lettered to a queue that does not exist", n)
	}
	dlq := q.also("orders.dlq", nil)
	eventually(t, 30*time.Second, "all five moved", func() bool { ready, _ := dlq.depth(); return ready == 5 })
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	dlq.drainInto(l)
	if ready, _ := q.depth(); ready != 0 {
		t.Errorf("%d are left in the source", ready)
	}
	check(t, l, oracle.Allow{})
}

// F-B06: a memory alarm blocks publishers while failing handlers need to publish.
func TestMemoryAlarmBlocksOnlyWhatHasToPublish(t *testing.T) {
	t.Parallel()
	node := brokertest.FaultNode(t)
	l := oracle.New()
	q := newRabbitQueue(t, node.URL, "orders", nil)
	dlq := q.also("orders.dlq", nil)
	q.publish(l, 0, 200, 0)
	c := newContainer(t, amqp.New(node.URL, amqp.Config{}).Queue("orders", amqp.QueueConfig{}), container.Config{
		Workers: container.Workers{Min: 4, Max: 4}, DeadLetter: container.DeadLetter{To: "orders.dlq"},
		Redelivery: container.Redelivery{MaxAttempts: 1, Backoff: container.Backoff{Initial: 200 * time.Millisecond, Max: time.Second}},
	}, func(_ context.Context, d *longshore.Delivery) error {
		if d.Body[len(d.Body)-1] == '7' { // every tenth
			return longshore.Reject(errors.New("bad"))
		}
		l.Begin(string(d.Body), "")(true)
		return nil
	})
	node.MemoryAlarm(true)
	defer node.MemoryAlarm(false)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the good ones flow during the alarm", func() bool { return l.Done() == 180 })
	node.MemoryAlarm(false)
	eventually(t, 40*time.Second, "the bad ones moved after it", func() bool { ready, _ := dlq.depth(); return ready >= 20 && deadLettered(c) == 20 })
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	dlq.drainInto(l)
	// What was written into the alarm before it was known is published after it, too.
	check(t, l, oracle.Allow{DeadTwice: 4})
}

// The node goes away and comes back in mid-flight: rabbitmqctl stop_app, then kill -9.
func TestBrokerRestartsLoseNothing(t *testing.T) {
	t.Parallel()
	node := brokertest.FaultNode(t)
	queueKinds(t, func(t *testing.T, args amqp091.Table) {
		l := oracle.New()
		q := newRabbitQueue(t, node.URL, "restart-"+fmt.Sprint(args["x-queue-type"]), args)
		c := consumeFrom(t, amqp.New(node.URL, amqp.Config{}).Queue(q.name, amqp.QueueConfig{}),
			container.Config{Workers: container.Workers{Min: 8, Max: 8}, Order: container.ByKey, Reopen: quickly},
			func(_ context.Context, d *longshore.Delivery) error {
				end := l.Begin(string(d.Body), string(d.Key))
				<-time.After(10 * time.Millisecond)
				end(d.Owned())
				return nil
			})
		for i, fault := range []func(){
			func() { node.CloseAllConnections() },
			func() { node.StopApp(); node.StartApp() },
			func() { node.Kill(); node.Start() },
		} {
			q.publish(l, i*1000, 1000, 60)
			before := l.Done()
			eventually(t, 30*time.Second, "some were handled", func() bool { return l.Done() > before+100 })
			fault()
			q.reconnect()
		}
		eventually(t, 90*time.Second, "all are done", func() bool { return l.Done() == 3000 })
		if err := c.Stop(t.Context()); err != nil {
			t.Errorf("stop: %v", err)
		}
		if ready, _ := q.depth(); ready != 0 {
			t.Errorf("%d are left", ready)
		}
		// At each fault what was held may run twice: the effect was there, its ack was
		// not. A classic queue that is killed also forgets the acks of the last moments,
		// which it had not yet written to its disk. Of a quorum queue's acks the broker's
		// channel keeps back what the queue is too slow for, at most a window.
		allow := 3 * 250
		if args["x-queue-type"] == nil {
			allow += 500
		}
		check(t, l, oracle.Allow{Twice: allow})
	})
}

// The queue is deleted underneath and comes back.
func TestDeletedQueueIsWaitedFor(t *testing.T) {
	url, l := brokertest.AMQP(t), oracle.New()
	q := newRabbitQueue(t, url, "orders", nil)
	c := consume(t, url, "orders", container.Config{Reopen: quickly}, record(l))
	q.publish(l, 0, 5, 0)
	eventually(t, 10*time.Second, "handled", func() bool { return l.Done() == 5 })
	if _, err := q.ch.QueueDelete("orders", false, false, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the loss of the consumer is seen", func() bool { return c.State() == container.StateRecovering })
	again := newRabbitQueue(t, url, "orders", nil)
	again.publish(l, 5, 5, 0)
	eventually(t, 10*time.Second, "consuming again", func() bool { return l.Done() == 10 })
	check(t, l, oracle.Allow{})
}

// A black hole: nothing says that the link is dead but the heartbeat.
func TestBlackHoleIsNoticedByHeartbeat(t *testing.T) {
	url, l := brokertest.AMQP(t), oracle.New()
	q := newRabbitQueue(t, url, "orders", nil)
	proxy, purl := proxied(t, url)
	c := consumeFrom(t, amqp.New(purl, amqp.Config{Heartbeat: time.Second}).Queue("orders", amqp.QueueConfig{}), container.Config{Reopen: quickly}, record(l))
	q.publish(l, 0, 5, 0)
	eventually(t, 10*time.Second, "handled", func() bool { return l.Done() == 5 })
	proxy.BlackHole(true)
	eventually(t, 10*time.Second, "noticed", func() bool { return c.State() == container.StateRecovering })
	proxy.BlackHole(false)
	q.publish(l, 5, 5, 0)
	eventually(t, 15*time.Second, "consuming again", func() bool { return l.Done() == 10 })
	check(t, l, oracle.Allow{Twice: 5})
}
