package container_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport/memory"
)

// Ten messages fill MaxBytes: the policy hears that more workers would find none, and
// Why says so. Small messages let it go on.
func TestBytesAreACeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		put := func(n, size int) {
			pub, err := b.Publisher(memory.PublisherConfig{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = pub.Close(context.Background()) }()
			body := bytes.Repeat([]byte("x"), size)
			for range n {
				if err := pub.Publish(context.Background(), "q", &longshore.Message{Body: body}); err != nil {
					t.Fatal(err)
				}
			}
		}
		put(2000, 100<<10)
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { <-time.After(100 * time.Millisecond); return nil }),
			container.Config{MaxBytes: 1 << 20, Workers: container.Workers{Max: 100}})
		<-time.After(12 * time.Second)
		if st, why := c.Stats(), c.Why(); st.Target > 13 || st.Target < 8 || st.Scaling.Limit != autoscale.LimitWindow || why.By != container.ByWindow {
			t.Errorf("%d workers, %+v, %+v", st.Target, st.Scaling, why)
		}
		put(10_000, 100)
		<-time.After(20 * time.Second)
		if st := c.Stats(); st.Target < 20 {
			t.Errorf("small ones: %d workers, %+v", st.Target, st.Scaling)
		}
	})
}
