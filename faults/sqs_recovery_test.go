package faults

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/sqs"
)

func quickReopen() container.Backoff {
	return container.Backoff{Initial: 50 * time.Millisecond, Max: 500 * time.Millisecond}
}

// What ElasticMQ does and the other tests have to live with. When it no longer
// does, sqsLab.lease can go.
func TestElasticMQGivesMessagesToPollsThatHaveEnded(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", nil)
		at := l.at(name)
		ctx, cancel := context.WithTimeout(l.t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := l.client.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: at, WaitTimeSeconds: 20})
		if err == nil {
			l.t.Fatal("the poll was answered")
		}
		<-time.After(300 * time.Millisecond)
		led := oracle.New()
		l.publish(led, name, 0, 1, 0)
		visible, hidden := l.counts(name)
		if wrong := l.strict == nil; (hidden == 1) != wrong || (visible == 1) == wrong {
			l.t.Errorf("%d visible, %d hidden after a poll was cut off", visible, hidden)
		}
	})
}

// F-B01, F-B02: the broker is away at the start, and goes away again in the middle
// of each step of coming back.
func TestSQSComesBackFromAnyStep(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name, other := l.queue("", nil), l.queue("", nil)
		led, beside := oracle.New(), oracle.New()
		l.proxy.Refuse()
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{Reopen: quickReopen()}, record(led))
		direct := l.config()
		direct.Endpoint = *l.client.Options().BaseEndpoint
		healthy := consumeFrom(l.t, sqs.New(direct).Queue(other, sqs.QueueConfig{}), container.Config{}, record(beside))
		l.publish(beside, other, 0, 20, 0)
		eventually(l.t, 20*time.Second, "the other container works meanwhile", func() bool { return beside.Done() == 20 })
		if st := c.Stats(); !st.Live || st.Ready {
			l.t.Errorf("live %t, ready %t without a broker", st.Live, st.Ready)
		}
		for round := range 6 {
			if err := l.proxy.Listen(); err != nil {
				l.t.Fatal(err)
			}
			// Cut after the n-th connection: the look-up, the attributes, the first receives.
			n := l.proxy.Accepted()
			eventually(l.t, 10*time.Second, "a connection", func() bool { return l.proxy.Accepted() > n })
			<-time.After(time.Duration(round) * 3 * time.Millisecond)
			l.proxy.Refuse()
			l.proxy.CutAll()
		}
		l.publish(led, name, 0, 30, 0)
		if err := l.proxy.Listen(); err != nil {
			l.t.Fatal(err)
		}
		eventually(l.t, 6*time.Second+2*l.limit(), "it consumes", func() bool { return led.Done() == 30 })
		stopped(l.t, c)
		stopped(l.t, healthy)
		l.idle(name)
		check(l.t, led, oracle.Allow{Twice: 10})
	})
}

// F-B02: WaitForBroker makes Start fail, with the source in the error.
func TestSQSStartWaitsForTheBrokerOrSaysWhy(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", nil)
		l.proxy.Refuse()
		c := newContainer(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{WaitForBroker: true, Reopen: quickReopen()}, record(oracle.New()))
		ctx, cancel := context.WithTimeout(l.t.Context(), 700*time.Millisecond)
		defer cancel()
		if err := c.Start(ctx); err == nil || !strings.Contains(err.Error(), name) {
			l.t.Errorf("Start: %v", err)
		}
	})
}

// F-B04, F-B03: the link drops and is back while 20 handlers are at work. Leases
// outlive the link, so nothing is lost and all is settled once.
func TestSQSHandlersOutliveTheLink(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", map[string]string{"VisibilityTimeout": "60"})
		led := oracle.New()
		l.publish(led, name, 0, 20, 0)
		var busy atomic.Int64
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{Workers: fixed(20), Lookahead: -1, Reopen: quickReopen()}, func(_ context.Context, d *longshore.Delivery) error {
			end := led.Begin(string(d.Body), "")
			busy.Add(1)
			<-time.After(3 * time.Second)
			end(true)
			return nil
		})
		eventually(l.t, 20*time.Second, "all are at work", func() bool { return busy.Load() == 20 })
		l.proxy.Refuse()
		l.proxy.ResetAll()
		<-time.After(500 * time.Millisecond)
		if v, h := l.counts(name); v != 0 || h != 20 {
			l.t.Errorf("%d visible, %d hidden while they work", v, h)
		}
		if err := l.proxy.Listen(); err != nil {
			l.t.Fatal(err)
		}
		eventually(l.t, 20*time.Second, "all are done", func() bool { return led.Done() == 20 })
		l.idle(name)
		if st := c.Stats(); st.Lost != 0 || total(st.SettleFailures) != 0 {
			l.t.Errorf("%d lost, %v", st.Lost, st.SettleFailures)
		}
		stopped(l.t, c)
		check(l.t, led, oracle.Allow{})
	})
}

// F-B05, F-G03: the dead-letter queue is missing. The source keeps the message
// until it is there; then it moves once.
func TestSQSDeadLetterQueueMissing(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", nil)
		dead := strings.TrimPrefix(name, "q") + "-dead"
		led := oracle.New()
		l.publish(led, name, 0, 5, 0)
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{DeadLetter: container.DeadLetter{To: dead},
			Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: 20 * time.Millisecond, Max: 100 * time.Millisecond}}},
			func(context.Context, *longshore.Delivery) error { return errors.New("never") })
		eventually(l.t, 20*time.Second, "moves fail", func() bool { return c.Stats().DeadLetterFailures > 5 })
		if v, h := l.counts(name); v+h != 5 {
			l.t.Errorf("the source holds %d", v+h)
		}
		out, err := l.client.CreateQueue(l.t.Context(), &awssqs.CreateQueueInput{QueueName: &dead})
		if err != nil {
			l.t.Fatal(err)
		}
		defer func() {
			_, _ = l.client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: out.QueueUrl})
		}()
		eventually(l.t, 60*time.Second, "all have moved", func() bool { v, _ := l.counts(dead); return v == 5 && l.empty(name) })
		stopped(l.t, c)
		if v, _ := l.counts(dead); v != 5 {
			l.t.Errorf("%d in the dead-letter queue", v)
		}
	})
}

// F-B06: publishing is blocked while failing handlers need it; the others keep
// flowing, and when it is over all goes on.
func TestSQSBlockedPublisherHoldsNobodyUp(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		name, dead := l.queue("", nil), l.queue("", nil)
		direct := l.config()
		direct.Endpoint = *l.client.Options().BaseEndpoint
		via, err := l.broker().Publisher(sqs.PublisherConfig{}) // through the proxy
		if err != nil {
			l.t.Fatal(err)
		}
		defer func() { _ = via.Close(context.Background()) }()
		led := oracle.New()
		l.publish(led, name, 0, 200, 0)
		l.proxy.BlackHole(true)
		c := consumeFrom(l.t, sqs.New(direct).Queue(name, sqs.QueueConfig{}), container.Config{Workers: fixed(8), DeadLetter: container.DeadLetter{To: dead, Via: via},
			Redelivery: container.Redelivery{MaxAttempts: 1, Backoff: container.Backoff{Initial: 100 * time.Millisecond, Max: 200 * time.Millisecond}}},
			func(_ context.Context, d *longshore.Delivery) error {
				end := led.Begin(string(d.Body), "")
				bad := strings.HasSuffix(string(d.Body), "00") || strings.HasSuffix(string(d.Body), "50")
				end(!bad)
				if bad {
					return errors.New("never")
				}
				return nil
			})
		eventually(l.t, 60*time.Second, "the good ones are done", func() bool { return led.Done() == 197 })
		if st := c.Stats(); !st.Live || deadLettered(c) != 0 {
			l.t.Errorf("live %t, %d moved through a black hole", st.Live, deadLettered(c))
		}
		l.proxy.BlackHole(false)
		eventually(l.t, 60*time.Second, "the bad ones have moved", func() bool { return l.empty(name) })
		stopped(l.t, c)
		seen := map[string]bool{}
		l.drain(dead, func(m types.Message) {
			if id := aws.ToString(m.Body); !seen[id] { // a publish whose answer never came is repeated
				seen[id] = true
				led.Dead(id)
			}
		})
		check(l.t, led, oracle.Allow{})
	})
}
