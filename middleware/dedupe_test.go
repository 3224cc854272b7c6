package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware"
)

// counting counts calls by message id and returns what result says.
type counting struct {
	calls  map[string]int
	result error
}

func (c *counting) Handle(_ context.Context, d *longshore.Delivery) error {
	c.calls[d.ID]++
	return c.result
}

func TestDedupeHandlesOnceWhatSucceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &counting{calls: map[string]int{}}
		chain := longshore.Chain(h, middleware.Dedupe(middleware.DedupeConfig{Size: 100, For: time.Minute}))
		do := func(id string) error { return chain.Handle(t.Context(), delivery(longshore.Message{ID: id})) }
		h.result = errors.New("failed")
		_ = do("a") // a failure is not remembered
		h.result = nil
		for range 3 {
			if err := do("a"); err != nil {
				t.Error(err)
			}
		}
		if h.calls["a"] != 2 {
			t.Errorf("called %d times, want once more after the failure", h.calls["a"])
		}
		_, _ = do(""), do("") // no id: always handled
		if h.calls[""] != 2 {
			t.Errorf("without an id: %d", h.calls[""])
		}
		<-time.After(61 * time.Second)
		if _ = do("a"); h.calls["a"] != 3 {
			t.Errorf("after a minute: %d", h.calls["a"])
		}
		for i := range 1000 { // bounded
			_ = do(fmt.Sprint(i))
		}
		if _ = do("a"); h.calls["a"] != 4 {
			t.Errorf("after a thousand others: %d", h.calls["a"])
		}
		if _ = do("999"); h.calls["999"] != 1 {
			t.Error("the newest was forgotten")
		}
	})
}

func TestDedupeReleasesWhatRunsElsewhere(t *testing.T) {
	started, end := make(chan struct{}), make(chan struct{})
	chain := longshore.Chain(handle(func(context.Context, *longshore.Delivery) error { close(started); <-end; panic("gone") }),
		middleware.Recover(), middleware.Dedupe(middleware.DedupeConfig{}))
	first := make(chan error, 1)
	go func() { first <- chain.Handle(context.Background(), delivery(longshore.Message{ID: "a"})) }()
	<-started
	if err := chain.Handle(t.Context(), delivery(longshore.Message{ID: "a"})); verdict(err) != longshore.VerdictRelease {
		t.Errorf("while it runs: %v", err)
	}
	close(end)
	if err := <-first; !errors.Is(err, longshore.CodePanic) {
		t.Errorf("%v", err)
	}
	// A panic is a failure: it runs again (and finds started closed).
	err := chain.Handle(t.Context(), delivery(longshore.Message{ID: "a"}))
	if !errors.Is(err, longshore.CodePanic) {
		t.Errorf("after the panic: %v", err)
	}
}

func TestDedupeInABatch(t *testing.T) {
	wrap, _ := middleware.Dedupe(middleware.DedupeConfig{}).(longshore.BatchWrapper)
	var got []string
	h := wrap.WrapBatch(longshore.BatchHandlerFunc(func(_ context.Context, ds []*longshore.Delivery) error {
		got = got[:0]
		for _, d := range ds {
			got = append(got, d.ID)
		}
		if len(got) > 1 && got[1] == "b" {
			return longshore.BatchError{1: errors.New("not b")}
		}
		return nil
	}))
	batch := func(ids ...string) []*longshore.Delivery {
		ds := make([]*longshore.Delivery, len(ids))
		for i, id := range ids {
			ds[i] = delivery(longshore.Message{ID: id})
		}
		return ds
	}
	err := h.HandleBatch(t.Context(), batch("a", "b", "a"))
	var b longshore.BatchError
	if fmt.Sprint(got) != "[a b]" || !errors.As(err, &b) || len(b) != 2 || verdict(b[2]) != longshore.VerdictRelease {
		t.Errorf("%v: %v", got, err)
	}
	if err := h.HandleBatch(t.Context(), batch("a", "b")); fmt.Sprint(got) != "[b]" || err != nil {
		t.Errorf("%v: %v", got, err)
	}
	got = nil
	if err := h.HandleBatch(t.Context(), batch("a", "b")); got != nil || err != nil {
		t.Errorf("all done: %v: %v", got, err)
	}
}

// F-G03: what a handler gave back by a verb is not done, although it returned nil.
func TestDedupeHandlesAgainWhatWasGivenBack(t *testing.T) {
	calls := 0
	work(t, handle(func(ctx context.Context, d *longshore.Delivery) error {
		if calls++; calls == 1 {
			return d.Nack(ctx, time.Millisecond)
		}
		return nil
	}), []longshore.Middleware{middleware.Dedupe(middleware.DedupeConfig{})}, &longshore.Message{ID: "a"})
	if calls != 2 {
		t.Errorf("called %d times, want again after the nack", calls)
	}
}

// With manual settling a return says nothing.
func TestDedupeRefusesManualSettling(t *testing.T) {
	check, _ := middleware.Dedupe(middleware.DedupeConfig{}).(longshore.Checker)
	if err := check.Check(t.Context(), longshore.Facts{Manual: true}); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("manual: %v", err)
	}
	if err := check.Check(t.Context(), longshore.Facts{}); err != nil {
		t.Errorf("automatic: %v", err)
	}
}

// Without ids Dedupe does nothing: the first such message is reported, once.
func TestDedupeReportsMessagesWithoutAnID(t *testing.T) {
	core, seen := observer.New(zap.WarnLevel)
	h := &counting{calls: map[string]int{}}
	chain := longshore.Chain(h, middleware.Dedupe(middleware.DedupeConfig{Logger: zap.New(core)}))
	for _, id := range []string{"a", "", "", "b", ""} {
		if err := chain.Handle(t.Context(), delivery(longshore.Message{ID: id})); err != nil {
			t.Error(err)
		}
	}
	if h.calls[""] != 3 || seen.Len() != 1 || seen.All()[0].ContextMap()["help"] == nil {
		t.Errorf("%d calls, told %v", h.calls[""], seen.All())
	}
}
