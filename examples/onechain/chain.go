package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/telemetry"
)

// chain is the configuration for every broker.
func chain(db *sql.DB) (container.Config, error) {
	guard, err := breaker.New(breaker.Config{Name: "ledger", Consecutive: -1, MinRequests: 1000})
	if err != nil {
		return container.Config{}, err
	}
	once, err := mutex.New(mutex.SQL(db, mutex.SQLite), mutex.Config{Mode: mutex.Inbox, Consumer: "onechain", Retention: 8 * 24 * time.Hour, Logger: zap.NewNop()})
	if err != nil {
		return container.Config{}, err
	}
	tel := telemetry.New(telemetry.Config{})
	return container.Config{
		Workers:    container.Workers{Min: 4, Max: 4},
		Order:      container.ByKey,
		Throttle:   throttle.NewPermits(3),
		Redelivery: container.Redelivery{MaxAttempts: 3, Backoff: container.Backoff{Initial: 20 * time.Millisecond, Max: 50 * time.Millisecond}, Classify: classify},
		Middleware: []longshore.Middleware{tel.Trace(), tel.Metrics(), guard, middleware.Decode(middleware.DecodeConfig{}), once, middleware.Timeout(10 * time.Second)},
		Logger:     zap.NewNop(),
	}, nil
}

var errNever = errors.New("no such account")

// classify maps errors of the domain to verdicts, once for all handlers.
func classify(err error) error {
	if errors.Is(err, errNever) {
		return longshore.Reject(err)
	}
	return err
}

// order is the body of a message.
type order struct {
	Case string `json:"case"`
}

// play does what a case asks for. n is which call it is, from 1 on.
func play(name string, n int) error {
	first := n == 1
	switch name {
	case "fails twice":
		if n <= 2 {
			return errors.New("not yet")
		}
	case "always fails":
		return errors.New("never works")
	case "comes back later":
		if first {
			return longshore.Retry(errors.New("busy"), 100*time.Millisecond)
		}
	case "released":
		if first {
			return longshore.Release(errors.New("not mine now"), 50*time.Millisecond)
		}
	case "rejected":
		return longshore.Reject(errors.New("refused"))
	case "no such account":
		return errNever
	case "discarded":
		return longshore.Discard(errors.New("of no use"))
	case "panics once":
		if first {
			panic("boom") //nolint:forbidigo // what the case is about
		}
	}
	return nil
}

// decode reads the case, as longshore.Typed does.
func decode(d *longshore.Delivery) (order, error) {
	var o order
	if err := json.Unmarshal(d.Body, &o); err != nil {
		return o, longshore.Reject(&longshore.Error{Code: longshore.CodeUndecodable, Op: "decode an order", Err: err})
	}
	return o, nil
}
