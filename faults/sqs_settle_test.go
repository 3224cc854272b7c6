package faults

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/sqs"
)

// deaf loses the answers to the first calls of an action, which were carried out.
type deaf struct {
	next   awssqs.HTTPClient
	action string
	left   atomic.Int64
}

func (d *deaf) Do(r *http.Request) (*http.Response, error) {
	resp, err := d.next.Do(r)
	if err != nil || !strings.HasSuffix(r.Header.Get("X-Amz-Target"), d.action) || d.left.Add(-1) < 0 {
		return resp, err
	}
	_ = resp.Body.Close() // nobody hears it
	return nil, errors.New("connection reset")
}

// deafBroker does not hear the first n answers to an action.
func (l *sqsLab) deafBroker(action string, n int64) *sqs.Broker {
	cfg := l.config()
	cfg.Options = []func(*awssqs.Options){func(o *awssqs.Options) {
		d := &deaf{next: o.HTTPClient, action: action}
		d.left.Store(n)
		o.HTTPClient = d
	}}
	return sqs.New(cfg)
}

// F-D04: the answers to deletes are lost after the server has carried them out. They
// are sent again; ElasticMQ takes the second one for a failure, which is told to
// nobody, and nothing comes twice.
func TestSQSAnswersToDeletesAreLost(t *testing.T) {
	onSQS(t, func(l *sqsLab) {
		for _, suffix := range []string{"", ".fifo"} {
			name := l.queue(suffix, map[string]string{"VisibilityTimeout": "30"})
			led := oracle.New()
			groups := 0
			if suffix != "" {
				groups = 5
			}
			l.publish(led, name, 0, 30, groups)
			c := consumeFrom(l.t, l.deafBroker("DeleteMessageBatch", 2).Queue(name, sqs.QueueConfig{}), container.Config{OnEvent: func(e container.Event) {
				if e.Kind == container.EventSettleFailed {
					l.t.Errorf("told: %v", e.Err)
				}
			}}, record(led))
			eventually(l.t, 30*time.Second, "all are handled", func() bool { return led.Done() == 30 })
			stopped(l.t, c)
			l.idle(name)
			if r := led.Report(); len(r.Twice) > 0 {
				l.t.Errorf("%s: %v", name, r)
			}
		}
	})
}

// F-D07, F-D03: a handler fails at the moment when its lease is extended, and asks
// for a delay of more than a lease. It comes again after the delay: not after the
// lease, not at once, and with as many executions as attempts.
func TestSQSDelayLongerThanTheLease(t *testing.T) {
	const lease, delay = 2 * time.Second, 5 * time.Second
	onSQS(t, func(l *sqsLab) {
		name := l.queue("", map[string]string{"VisibilityTimeout": "2"})
		led := oracle.New()
		l.publish(led, name, 0, 6, 0)
		var mu sync.Mutex
		ended := map[string]time.Time{}
		handled := record(led)
		c := consumeFrom(l.t, l.broker().Queue(name, sqs.QueueConfig{}), container.Config{Workers: container.Workers{Min: 6, Max: 6}, OnEvent: func(e container.Event) {
			if e.Kind == container.EventSettleFailed || e.Kind == container.EventLost {
				l.t.Errorf("%s: %v", e.Kind, e.Err)
			}
		}}, func(ctx context.Context, d *longshore.Delivery) error {
			id := string(d.Body)
			if d.Attempt == 1 {
				<-time.After(lease * 2 / 5) // when the keeper extends it
				mu.Lock()
				defer mu.Unlock()
				ended[id] = time.Now()
				return longshore.Retry(errors.New("later"), delay)
			}
			mu.Lock()
			away := time.Since(ended[id])
			mu.Unlock()
			if d.Attempt != 2 || away < delay-time.Second {
				l.t.Errorf("attempt %d of %s came after %v", d.Attempt, id, away)
			}
			return handled(ctx, d)
		})
		eventually(l.t, time.Minute, "all are handled", func() bool { return led.Done() == 6 })
		stopped(l.t, c)
		l.idle(name)
		if r := led.Report(); len(r.Twice) > 0 {
			l.t.Errorf("%v", r)
		}
	})
}
