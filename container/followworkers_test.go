package container_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// following is a source whose consumers follow the workers, but for the first time.
type following struct {
	transport.Source

	mu   sync.Mutex
	told []int
}

func (f *following) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := f.Source.Open(ctx, o)
	return &follower{c, f}, err
}

type follower struct {
	transport.Consumer

	of *following
}

func (f *follower) FollowWorkers(_ context.Context, workers int) error {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.of.told = append(f.of.told, workers)
	if len(f.of.told) == 1 {
		return errors.New("the broker is slow")
	}
	return nil
}

// A transport that could not follow the workers is told again, also when the workers are by then
// as many as it knew before: it may have done a part.
func TestFailedFollowingIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &following{Source: memory.New(memory.Config{}).Queue("orders", memory.QueueConfig{})}
		c, err := container.New(f, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
			container.Config{Workers: container.Workers{Min: 3, Max: 3}})
		if err != nil {
			t.Fatal(err)
		}
		containertest.Start(t, c)
		must(t, c.Scale(5, 5))
		<-time.After(time.Second)
		must(t, c.Scale(3, 3))
		<-time.After(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.told) < 2 || f.told[0] != 5 || !slices.Contains(f.told[1:], 3) {
			t.Errorf("told %v, want 5, and 3 in the end", f.told)
		}
	})
}
