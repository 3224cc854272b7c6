package main

import (
	"context"
	"errors"
	"log"
	"sync"

	"github.com/longshore-go/longshore"
)

// Order is the body of a message.
type Order struct {
	ID    string
	Cents int
}

// shop is what the handler needs: a database, in a service of yours.
type shop struct {
	mu   sync.Mutex
	paid map[string]bool
}

// pay may run more than once for an order, because brokers redeliver. An error other than
// Reject is retried with a growing delay, then dead-lettered.
func (s *shop) pay(_ context.Context, o Order, d *longshore.Delivery) error {
	if o.Cents <= 0 {
		return longshore.Reject(errors.New("an order without an amount")) // to the dead-letter queue at once
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paid[o.ID] {
		return nil
	}
	s.paid[o.ID] = true
	log.Printf("order %s paid, attempt %d", o.ID, d.Attempt)
	return nil
}
