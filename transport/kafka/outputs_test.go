package kafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
)

// What handlers have published and no transaction has written is bounded: a Publish waits for the
// next transaction, fails where none would make room, and refuses what never fits.
func TestOutboxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &outbox{limit: 100, urgent: make(chan struct{}, 1), changed: make(chan struct{})}
		if err := b.reserve(t.Context(), 101, "out"); !errors.Is(err, longshore.CodeTooLarge) {
			t.Errorf("more than all: %v", err)
		}
		if err := b.reserve(t.Context(), 80, "out"); err != nil {
			t.Fatal(err)
		}
		if err := b.reserve(t.Context(), 30, "out"); !errors.Is(err, longshore.CodeBlocked) {
			t.Errorf("with all held by handlers: %v", err)
		}
		b.finished(80)
		done := make(chan error)
		go func() { done <- b.reserve(t.Context(), 30, "out") }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("it did not wait for the transaction: %v", err)
		case <-b.urgent:
		}
		b.carried(80)
		if err := <-done; err != nil || b.open != 30 || b.done != 0 {
			t.Errorf("%v, %d in hand, %d done; want 30 and 0", err, b.open, b.done)
		}
		b.finished(30)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.reserve(ctx, 80, "out"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a transaction: %v", err)
		}
	})
}

// All mistakes in the settings of transactions are reported together.
func TestTransactionalSettings(t *testing.T) {
	b := New([]string{"k1:9092"}, Config{Outlet: PublisherConfig{Acks: AcksLeader}})
	for name, c := range map[string]struct {
		cfg  GroupConfig
		bad  []string
		of   *Broker
		none bool
	}{
		"defaults": {cfg: GroupConfig{Transactional: &Transactional{}}, of: New([]string{"k1:9092"}, Config{}), none: true},
		"all": {cfg: GroupConfig{Isolation: ReadUncommitted, SettleLinger: time.Minute, Transactional: &Transactional{Timeout: time.Hour, Records: -1, MaxBytes: -1}}, of: b,
			bad: []string{"Transactional.Timeout", "Transactional.Records", "Transactional.MaxBytes", "Isolation", "Transactional"}},
		"batch time": {cfg: GroupConfig{SettleLinger: 5 * time.Second, Transactional: &Transactional{}}, of: New([]string{"k1:9092"}, Config{}), bad: []string{"SettleLinger"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.of.Group("g", []string{"orders"}, c.cfg).Check()
			if c.none != (err == nil) {
				t.Fatal(err)
			}
			for _, field := range c.bad {
				if !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), field) {
					t.Errorf("no mistake in %s: %v", field, err)
				}
			}
		})
	}
}
