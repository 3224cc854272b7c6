package container_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// completing is a source that puts the body in the place of a name, and knows none
// of those that begin with x.
type completing struct {
	transport.Source
	transport.Outlet
}

func completed(src transport.Source) completing {
	return completing{src, src.(transport.Outlet)} //nolint:errcheck // memory's are
}

func (completing) Prepare(_ context.Context, d *longshore.Delivery) error {
	if body := string(d.Body); strings.HasPrefix(body, "x") {
		return longshore.Reject(errBad)
	}
	m := *d.Received()
	m.Body = append([]byte("body of "), m.Body...)
	d.Replace(m)
	return nil
}

// A source may complete what it delivers: at each attempt, and what it cannot
// complete reaches no handler, alone or in a batch.
func TestSourceCompletesItsDeliveries(t *testing.T) {
	retry := container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: time.Second, Max: time.Second}}
	for name, begin := range map[string]func(*testing.T, transport.Source, func(*longshore.Delivery) error) *container.ListenerContainer{
		"single": func(t *testing.T, src transport.Source, h func(*longshore.Delivery) error) *container.ListenerContainer {
			return start(t, src, handle(h), container.Config{DeadLetter: container.DeadLetter{To: "dead"}, Redelivery: retry})
		},
		"batch": func(t *testing.T, src transport.Source, h func(*longshore.Delivery) error) *container.ListenerContainer {
			return startBatch(t, src, func(_ context.Context, ds []*longshore.Delivery) error {
				errs := longshore.BatchError{}
				for i, d := range ds {
					errs[i] = h(d)
				}
				return errs
			}, container.Config{DeadLetter: container.DeadLetter{To: "dead"}, Redelivery: retry, Batch: container.Batch{Size: 4, Linger: time.Second}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				publish(t, b, "q", "a", "x1", "bad", "x2", "c")
				var mu sync.Mutex
				var seen []string
				c := begin(t, completed(b.Queue("q", memory.QueueConfig{})), func(d *longshore.Delivery) error {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, string(d.Body))
					if strings.HasSuffix(string(d.Body), "bad") {
						return errBad
					}
					return nil
				})
				wait(time.Minute)
				stop(t, c)
				slices.Sort(seen)
				if want := []string{"body of a", "body of bad", "body of bad", "body of c"}; !slices.Equal(seen, want) {
					t.Errorf("handlers saw %q, want %q", seen, want)
				}
				var dead []string
				for _, d := range browse(t, b, "dead") {
					dead = append(dead, string(d.Body))
				}
				slices.Sort(dead)
				if want := []string{"bad", "x1", "x2"}; !slices.Equal(dead, want) {
					t.Errorf("dead: %q, want %q", dead, want)
				}
			})
		})
	}
}

// A batch that fails as a whole does so also beside what could not be completed:
// each comes alone next time.
func TestWholeBatchFailsBesideWhatCannotBeCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "a", "x1", "bad", "c")
		var sizes []int
		c := startBatch(t, completed(b.Queue("q", memory.QueueConfig{})), func(_ context.Context, ds []*longshore.Delivery) error {
			sizes = append(sizes, len(ds))
			for _, d := range ds {
				if strings.HasSuffix(string(d.Body), "bad") {
					return errBad
				}
			}
			return nil
		}, container.Config{DeadLetter: container.DeadLetter{To: "dead"}, Batch: container.Batch{Size: 4, Linger: time.Second}, Workers: container.Workers{Min: 1, Max: 1},
			Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: 100 * time.Millisecond, Max: 100 * time.Millisecond}}})
		wait(time.Minute)
		stop(t, c)
		if want := []int{3, 1, 1, 1}; !slices.Equal(sizes, want) || len(browse(t, b, "dead")) != 2 {
			t.Errorf("batches of %v, want %v; %d dead", sizes, want, len(browse(t, b, "dead")))
		}
	})
}
