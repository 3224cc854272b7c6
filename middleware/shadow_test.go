package middleware_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware"
)

func TestShadowComparesAndNeverSettles(t *testing.T) {
	type pair struct {
		main, shadow error
		panicked     any
	}
	own, other := errors.New("own"), errors.New("other")
	for name, c := range map[string]struct {
		h    func(d *longshore.Delivery) error
		want pair
	}{
		"agrees":  {func(*longshore.Delivery) error { return own }, pair{main: own, shadow: own}},
		"differs": {func(*longshore.Delivery) error { return other }, pair{main: own, shadow: other}},
		"panics":  {func(*longshore.Delivery) error { panic("boom") }, pair{main: own, panicked: "boom"}},
		"settles": {func(d *longshore.Delivery) error { return d.Ack(context.Background()) }, pair{main: own, shadow: longshore.ErrSettled}},
	} {
		got := make(chan pair, 1)
		s := middleware.NewShadow(middleware.ShadowConfig{
			Handler: handle(func(_ context.Context, d *longshore.Delivery) error { return c.h(d) }),
			Compare: func(_ *longshore.Delivery, main, shadow error, panicked any) { got <- pair{main, shadow, panicked} },
		})
		d := delivery(longshore.Message{ID: "m"})
		err := longshore.Chain(handle(func(context.Context, *longshore.Delivery) error { return own }), s).Handle(t.Context(), d)
		if g := <-got; g != c.want || !errors.Is(err, own) || !d.Owned() {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
		if err := s.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A second handler that hangs holds nobody up; when too many do, messages are not
// shown to it any more.
func TestShadowHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := middleware.NewShadow(middleware.ShadowConfig{Parallel: 2, Timeout: time.Minute,
			Handler: handle(func(ctx context.Context, _ *longshore.Delivery) error { <-ctx.Done(); return ctx.Err() })})
		h := longshore.Chain(handle(func(context.Context, *longshore.Delivery) error { return nil }), s)
		ctx, cancel := context.WithCancel(t.Context())
		for range 10 {
			if err := h.Handle(ctx, delivery(longshore.Message{})); err != nil {
				t.Error(err)
			}
		}
		cancel() // the first is over; the second goes on until its own limit
		if s.Skipped() != 8 {
			t.Errorf("skipped %d", s.Skipped())
		}
		begin := time.Now()
		if err := s.Wait(context.Background()); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}

// The first handler's panic goes its way, and the second is not waited for.
func TestShadowOfAPanic(t *testing.T) {
	s := middleware.NewShadow(middleware.ShadowConfig{Handler: handle(func(context.Context, *longshore.Delivery) error { return nil }),
		Compare: func(*longshore.Delivery, error, error, any) { t.Error("compared") }})
	err := longshore.Chain(handle(func(context.Context, *longshore.Delivery) error { panic("boom") }), middleware.Recover(), s).Handle(t.Context(), delivery(longshore.Message{}))
	if !errors.Is(err, longshore.CodePanic) || s.Wait(t.Context()) != nil {
		t.Errorf("%v", err)
	}
}
