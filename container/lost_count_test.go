package container_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
)

// F-N13: a delivery that is lost with its connection counts as lost once, whether the
// transport or the container finds it first.
func TestEachLostDeliveryIsCountedOnce(t *testing.T) {
	for name, reports := range map[string]bool{"the transport is first": true, "the container is first": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &handout{in: make(chan *longshore.Delivery), given: map[uint64]string{}}
				c := start(t, s, longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
					<-ctx.Done()
					return ctx.Err()
				}), container.Config{Workers: container.Workers{Min: 4, Max: 4}})
				var out []*longshore.Delivery
				for _, id := range []string{"a", "b", "c", "d"} {
					out = append(out, s.give(id))
				}
				synctest.Wait()
				if reports {
					s.take(true, out...)
				}
				s.o.Observer.Down(errors.New("cut"))
				synctest.Wait()
				var late []*longshore.Delivery // as every transport does: what was lost already is not reported
				for _, d := range out {
					if d.Lose(longshore.ErrLost) {
						late = append(late, d)
					}
				}
				if len(late) > 0 {
					s.o.Observer.Lost(late, longshore.ErrLost)
				}
				if got := c.Stats().Lost; got != 4 {
					t.Errorf("%d counted as lost, want 4", got)
				}
			})
		})
	}
}
