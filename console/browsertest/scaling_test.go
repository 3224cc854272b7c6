package browsertest

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
)

// Workers that go because of a throttle: the decision names it, and who set it.
func TestScaleDownNamesTheThrottle(t *testing.T) {
	t.Parallel()
	s := serve(t, func(ctx context.Context, _ *longshore.Delivery) error {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	}, func(c *container.Config) {
		c.Order = container.Unordered
		c.Workers = container.Workers{Min: 1, Max: 16}
	})
	p := s.logIn("/c/orders")
	s.publish(20_000, nil)
	p.within(30*time.Second, "Number(document.querySelector('ol.decisions li')?.innerText.match(/→ (\\d+)/)?.[1]) >= 8")
	two := 2
	s.limit.Override(throttle.Override{Permits: &two, By: "carol", Reason: "month end", Until: time.Now().Add(time.Hour)})
	p.within(20*time.Second, "document.querySelector('ol.decisions').innerText.includes('→ 2 throttled to 2 at once, set by carol (month end)')")
}
