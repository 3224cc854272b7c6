package demo

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
)

// purchase is the body of an order.
type purchase struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// newMessage makes order number n. A poisoned one is no JSON.
func newMessage(n int, o order) *longshore.Message {
	id, customer := "o-"+strconv.Itoa(n), "c-"+strconv.Itoa(o.key)
	m := &longshore.Message{Key: []byte(customer), ContentType: "application/json", Timestamp: time.Now()}
	m.Headers.Set(longshore.HeaderID, id)
	if o.poison {
		m.Body = []byte("<order id='" + id + "'/>")
		return m
	}
	// A struct of strings and an int always marshals.
	m.Body, _ = json.Marshal(purchase{ID: id, Customer: customer, Cents: 100 + n%900})
	return m
}

// numberOf is the order's number, −1 for a message that is not the demo's.
func numberOf(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "o-"))
	if err != nil {
		return -1
	}
	return n
}

func numberIn(d *longshore.Delivery) int {
	return numberOf(d.Received().Headers.String(longshore.HeaderID))
}

var errBusy = errors.New("the bank is busy")

// handler is what a service would have: it decodes an order and works on it.
// Around it the ledger takes notes.
func handler(l *ledger, pace *atomic.Int64) longshore.Handler {
	pay := longshore.Typed(longshore.JSON{Strict: true}, func(ctx context.Context, _ purchase, _ *longshore.Delivery) error {
		return work(ctx, workTime*time.Duration(pace.Load()))
	})
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		n := numberIn(d)
		fail := l.begin(n)
		err := pay.Handle(ctx, d)
		switch {
		case err != nil:
			return err
		case fail:
			return errBusy
		}
		l.done(n)
		return nil
	})
}

// work takes a while and obeys the context.
func work(ctx context.Context, takes time.Duration) error {
	t := time.NewTimer(takes)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// witness is a middleware that reports to the ledger what became of each delivery.
type witness struct{ ledger *ledger }

// Name implements longshore.Named.
func (witness) Name() string { return "demo ledger" }

// Wrap adds nothing: the witness only watches.
func (witness) Wrap(next longshore.Handler) longshore.Handler { return next }

// Outcome implements longshore.OutcomeObserver.
func (w witness) Outcome(d *longshore.Delivery, o longshore.Outcome) {
	n := numberIn(d)
	switch o.Verdict {
	case longshore.VerdictAck, longshore.VerdictDiscard:
		w.ledger.settled(n, +1)
	case longshore.VerdictReject:
		w.ledger.settled(n, +1)
		w.ledger.rejected(n)
	case longshore.VerdictLost:
		w.ledger.lose()
	}
}
