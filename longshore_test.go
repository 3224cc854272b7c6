package longshore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
)

type settler struct {
	mu    sync.Mutex
	verbs []longshore.Verb
	err   error
}

func (s *settler) note(v longshore.Verb) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verbs = append(s.verbs, v)
	return s.err
}

func (s *settler) Ack(context.Context, uint64) error { return s.note(longshore.VerbAck) }
func (s *settler) Nack(context.Context, uint64, time.Duration, int) error {
	return s.note(longshore.VerbNack)
}
func (s *settler) Reject(context.Context, uint64, error) error { return s.note(longshore.VerbReject) }
func (s *settler) Extend(context.Context, uint64, time.Duration) error {
	return s.note(longshore.VerbExtend)
}

func newDelivery(s longshore.Settler) *longshore.Delivery {
	return longshore.NewDelivery(context.Background(), s, 1)
}

func TestSettleTwiceIsRefused(t *testing.T) {
	s := &settler{}
	d := newDelivery(s)
	if err := d.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"ack": d.Ack(t.Context()), "nack": d.Nack(t.Context(), 0), "reject": d.Reject(t.Context(), nil), "extend": d.Extend(t.Context(), time.Second),
	} {
		if !errors.Is(err, longshore.ErrSettled) {
			t.Errorf("%s after ack: %v, want ErrSettled", name, err)
		}
	}
	if len(s.verbs) != 1 {
		t.Errorf("the transport saw %v, want one ack", s.verbs)
	}
}

func TestSettleAfterLossChangesNothing(t *testing.T) {
	s := &settler{}
	d := newDelivery(s)
	ctx := d.Context()
	done := ctx.Done()
	if !d.Lose(longshore.ErrLost) {
		t.Error("Lose on an open delivery said it was not open")
	}
	<-done
	if err := context.Cause(ctx); !errors.Is(err, longshore.ErrLost) {
		t.Errorf("cause %v, want ErrLost", err)
	}
	if err := d.Ack(t.Context()); !errors.Is(err, longshore.ErrLost) {
		t.Errorf("ack: %v, want ErrLost", err)
	}
	if d.Owned() || len(s.verbs) != 0 {
		t.Errorf("owned %v, transport saw %v", d.Owned(), s.verbs)
	}
}

func TestRefusedVerbLeavesDeliveryOpen(t *testing.T) {
	s := &settler{err: &longshore.Error{Code: longshore.CodeUnsupported}}
	d := newDelivery(s)
	if err := d.Reject(t.Context(), nil); !errors.Is(err, longshore.CodeUnsupported) {
		t.Fatalf("got %v", err)
	}
	s.err = nil
	if err := d.Ack(t.Context()); err != nil {
		t.Errorf("ack after a refused reject: %v", err)
	}
}

func TestAgainTakesOverAndLossReachesIt(t *testing.T) {
	s := &settler{}
	d := newDelivery(s)
	d.Body = []byte("x")
	d.Replace(longshore.Message{Body: []byte("y")})
	second, err := d.Again(2)
	if err != nil {
		t.Fatal(err)
	}
	third, err := second.Again(3)
	if err != nil {
		t.Fatal(err)
	}
	if string(third.Body) != "x" || third.Attempt != 3 {
		t.Errorf("body %q attempt %d, want what was received and 3", third.Body, third.Attempt)
	}
	if err := d.Ack(t.Context()); !errors.Is(err, longshore.ErrSettled) {
		t.Errorf("old attempt: %v, want ErrSettled", err)
	}
	if !d.Lose(longshore.ErrLost) || third.Owned() {
		t.Error("a loss told to the first attempt did not reach the running one")
	}
	if _, err := third.Again(4); !errors.Is(err, longshore.ErrLost) {
		t.Errorf("retry of a lost delivery: %v", err)
	}
}

func TestLossAndRetryRace(t *testing.T) {
	for range 2000 {
		d := newDelivery(&settler{})
		var next *longshore.Delivery
		var wg sync.WaitGroup
		wg.Go(func() { next, _ = d.Again(2) })
		wg.Go(func() { d.Lose(longshore.ErrLost) })
		wg.Wait()
		if next != nil && next.Owned() {
			t.Fatal("the new attempt does not know of the loss")
		}
	}
}

func TestContextIsStandardForItsChildren(t *testing.T) {
	type key struct{}
	base, stop := context.WithCancelCause(context.WithValue(context.Background(), key{}, "v"))
	d := longshore.NewDelivery(base, &settler{}, 1)
	child, cancel := context.WithTimeout(d.Context(), time.Hour)
	defer cancel()
	if child.Value(key{}) != "v" {
		t.Error("values of the base are not seen")
	}
	stop(longshore.ErrStopping)
	<-child.Done()
	if err := context.Cause(child); !errors.Is(err, longshore.ErrStopping) {
		t.Errorf("cause %v, want ErrStopping", err)
	}
	lost := newDelivery(&settler{})
	lost.Lose(longshore.ErrLost) // before anybody asked for Done
	if err := context.Cause(lost.Context()); !errors.Is(err, longshore.ErrLost) {
		t.Errorf("cause %v, want ErrLost", err)
	}
}

func TestFinishEndsContextAndOnlyOnce(t *testing.T) {
	d := newDelivery(&settler{})
	ctx := d.Context()
	d.Finish(nil)
	d.Lose(longshore.ErrLost)
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cause %v, want the first one", err)
	}
}

func TestOutermostVerdictWins(t *testing.T) {
	cause := errors.New("boom")
	v, delay := longshore.VerdictOf(longshore.Retry(longshore.Reject(cause), time.Second))
	if v != longshore.VerdictRetry || delay != time.Second {
		t.Errorf("got %v %v", v, delay)
	}
	if !errors.Is(longshore.Discard(cause), cause) {
		t.Error("the reason is not reachable")
	}
	if v, _ := longshore.VerdictOf(cause); v != longshore.VerdictNone {
		t.Errorf("plain error: %v", v)
	}
	if v, _ := longshore.VerdictOf(nil); v != longshore.VerdictAck {
		t.Errorf("nil: %v", v)
	}
}

func TestErrorIsOneLineByCode(t *testing.T) {
	err := error(&longshore.Error{Code: longshore.CodeNotFound, Op: `open rabbitmq queue "orders"`, Err: errors.New("it does not exist"), Hint: "create it"})
	if got, want := err.Error(), `longshore: open rabbitmq queue "orders": it does not exist; create it`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !errors.Is(err, longshore.CodeNotFound) || errors.Is(err, longshore.CodeAuth) {
		t.Error("errors.Is by code")
	}
}

func TestHeaders(t *testing.T) {
	h := longshore.Headers{{Name: "a", Value: "1"}, {Name: "b", Value: int64(2)}, {Name: "a", Value: []byte("3")}}
	shared := h
	h.Set("a", "9")
	if h.String("a") != "9" || len(h) != 2 || len(shared) != 3 || shared.String("a") != "1" {
		t.Errorf("set: %v, shared %v", h, shared)
	}
	if n, ok := h.Int("b"); !ok || n != 2 {
		t.Error("int")
	}
	if err := (longshore.Headers{{Name: "x", Value: []any{struct{}{}}}}).Check(); !errors.Is(err, longshore.CodeBadHeader) {
		t.Errorf("check: %v", err)
	}
	for d, want := range map[longshore.Decimal]string{{Scale: 2, Value: 1250}: "12.50", {Scale: 3, Value: -5}: "-0.005", {Value: 7}: "7"} {
		if d.String() != want {
			t.Errorf("decimal %v, want %s", d.String(), want)
		}
	}
}

func TestUndecodableBodyIsRejectedAndHandlerDoesNotRun(t *testing.T) {
	ran := false
	h := longshore.Typed(longshore.JSON{Strict: true}, func(context.Context, struct{ ID string }, *longshore.Delivery) error {
		ran = true
		return nil
	})
	for _, body := range []string{"", "<x>", `{"ID":"a"} {}`, `{"No":1}`, `{"ID":`} {
		d := newDelivery(&settler{})
		d.Body = []byte(body)
		d.Headers.Set(longshore.HeaderID, "o-17") // ID is empty
		err := h.Handle(t.Context(), d)
		if v, _ := longshore.VerdictOf(err); v != longshore.VerdictReject || !errors.Is(err, longshore.CodeUndecodable) || !strings.Contains(err.Error(), "o-17") {
			t.Errorf("body %q: %v", body, err)
		}
	}
	if ran {
		t.Error("the handler ran")
	}
}

// Counts by code are printed by people who look at Stats.
func TestMapsOfCodesPrintTheCodes(t *testing.T) {
	if got := fmt.Sprint(map[longshore.Code]int{longshore.CodePanic: 3}); got != "map[panic:3]" {
		t.Error(got)
	}
}
