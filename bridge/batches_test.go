package bridge

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
)

// slow is a broker whose calls take a while. It notes how many messages came with each.
type slow struct {
	mu    sync.Mutex
	calls []int
}

func (s *slow) Publish(_ context.Context, _ string, msgs ...*longshore.Message) error {
	s.mu.Lock()
	s.calls = append(s.calls, len(msgs))
	s.mu.Unlock()
	<-time.After(20 * time.Millisecond)
	return nil
}

func (*slow) Close(context.Context) error { return nil }

// At a broker that is paid by the call messages wait a moment for company, unless they come alone: then,
// and at other brokers, a message leaves at once.
func TestCallsFillUp(t *testing.T) {
	for name, like := range map[string]struct {
		most, workers int
		calls         int           // at the most, for 10 messages of each worker
		took          time.Duration // at the most
	}{
		"one worker, SQS":      {10, 1, 10, 200 * time.Millisecond},
		"ten workers, SQS":     {10, 10, 12, 250 * time.Millisecond}, // the first leaves alone
		"one worker, RabbitMQ": {0, 1, 10, 200 * time.Millisecond},
		"256 workers, Kafka":   {0, 256, 300, 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, began := &slow{}, time.Now()
				b := newBatches(t.Context(), s, "orders", longshore.Capabilities{MaxPublishBatch: like.most})
				var wg sync.WaitGroup
				for w := range like.workers {
					wg.Go(func() {
						<-time.After(time.Duration(w) * time.Microsecond)
						for range 10 {
							if err := b.publish(t.Context(), &longshore.Message{}); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
				if took := time.Since(began); took > like.took || len(s.calls) > like.calls {
					t.Errorf("%s in %d calls: %v", took, len(s.calls), s.calls)
				}
				if err := b.close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
