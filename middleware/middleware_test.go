package middleware_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestRecoverMakesAnErrorOfAPanic(t *testing.T) {
	h := longshore.Chain(handle(func(context.Context, *longshore.Delivery) error { panic("boom") }), middleware.Recover())
	err := h.Handle(t.Context(), delivery(longshore.Message{}))
	var p *longshore.Panic
	if !errors.Is(err, longshore.CodePanic) || !errors.As(err, &p) || p.Value != "boom" || !strings.Contains(string(p.Stack), "middleware_test") {
		t.Errorf("%v, %+v", err, p)
	}
	wrap, _ := middleware.Recover().(longshore.BatchWrapper)
	err = wrap.WrapBatch(longshore.BatchHandlerFunc(func(context.Context, []*longshore.Delivery) error { panic("all") })).HandleBatch(t.Context(), nil)
	if !errors.Is(err, longshore.CodePanic) {
		t.Errorf("batch: %v", err)
	}
}

func TestTimeoutEndsTheContextAndNamesTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obey := handle(func(ctx context.Context, _ *longshore.Delivery) error { <-ctx.Done(); return ctx.Err() })
		begin := time.Now()
		err := longshore.Chain(obey, middleware.Timeout(time.Second)).Handle(t.Context(), delivery(longshore.Message{}))
		if took := time.Since(begin); took != time.Second || !errors.Is(err, longshore.CodeTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// What the handler decides stays: late success, an explicit verdict, its own error
// in time, and the end of the container's own context.
func TestTimeoutLeavesOtherResultsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := errors.New("own")
		for name, c := range map[string]struct {
			h    func(ctx context.Context) error
			want func(error) bool
		}{
			"late success":  {func(ctx context.Context) error { <-ctx.Done(); return nil }, func(err error) bool { return err == nil }},
			"a verdict":     {func(ctx context.Context) error { <-ctx.Done(); return longshore.Reject(own) }, func(err error) bool { return verdict(err) == longshore.VerdictReject }},
			"an error":      {func(context.Context) error { return own }, func(err error) bool { return err == own }}, //nolint:errorlint // the very same
			"part of batch": {func(ctx context.Context) error { <-ctx.Done(); return longshore.BatchError{1: own} }, func(err error) bool { var b longshore.BatchError; return errors.As(err, &b) && len(b) == 1 }},
		} {
			err := longshore.Chain(handle(func(ctx context.Context, _ *longshore.Delivery) error { return c.h(ctx) }), middleware.Timeout(time.Second)).Handle(t.Context(), delivery(longshore.Message{}))
			if !c.want(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(longshore.ErrStopping)
		err := longshore.Chain(handle(func(ctx context.Context, _ *longshore.Delivery) error { <-ctx.Done(); return context.Cause(ctx) }), middleware.Timeout(time.Second)).Handle(ctx, delivery(longshore.Message{}))
		if !errors.Is(err, longshore.ErrStopping) || errors.Is(err, longshore.CodeTimeout) {
			t.Errorf("stopping: %v", err)
		}
	})
}

func TestWhatCannotWorkFailsTheStart(t *testing.T) {
	for name, m := range map[string]longshore.Middleware{"timeout": middleware.Timeout(0), "shadow": middleware.NewShadow(middleware.ShadowConfig{})} {
		c, err := container.New(memory.New(memory.Config{}).Queue("q", memory.QueueConfig{}), handle(func(context.Context, *longshore.Delivery) error { return nil }),
			container.Config{Middleware: []longshore.Middleware{m}, Logger: zap.NewNop()})
		if err == nil {
			err = c.Start(t.Context())
			_ = c.Stop(context.Background())
		}
		if !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLogWritesOneLineForEachCall(t *testing.T) {
	core, lines := observer.New(zapcore.InfoLevel)
	calls := 0
	work(t, handle(func(_ context.Context, d *longshore.Delivery) error {
		calls++
		if d.ID == "bad" {
			return longshore.Discard(errors.New("no use"))
		}
		return nil
	}), []longshore.Middleware{middleware.Log(zap.New(core))}, &longshore.Message{ID: "good", Key: []byte("k"), Body: []byte("secret")}, &longshore.Message{ID: "bad", Body: []byte("secret")})
	if lines.Len() != 2 || calls != 2 {
		t.Fatalf("%d lines for %d calls", lines.Len(), calls)
	}
	for _, l := range lines.All() {
		m := l.ContextMap()
		if want := map[any]string{"good": "ack", "bad": "discard"}[m["message_id"]]; m["verdict"] != want || m["source"] != "q" || m["attempt"] != int64(1) {
			t.Errorf("%v", m)
		}
		for k, v := range m {
			if s, ok := v.(string); ok && strings.Contains(s, "secret") {
				t.Errorf("the body is in %s", k)
			}
		}
	}
}
