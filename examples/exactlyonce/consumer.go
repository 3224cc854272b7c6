package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport/amqp"
)

// The environment of a child.
const (
	envURL = "EXACTLYONCE_URL"
	envDB  = "EXACTLYONCE_DB"
)

var errParent = errors.New("not a child")

// consumeIfChild is a consumer's whole life, usually ended by SIGKILL.
func consumeIfChild(ctx context.Context) error {
	url := os.Getenv(envURL)
	if url == "" {
		return errParent
	}
	db, err := open(os.Getenv(envDB))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	once, err := mutex.New(mutex.SQL(db, mutex.SQLite), mutex.Config{BusyDelay: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	source := amqp.New(url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	c, err := container.New(source, longshore.HandlerFunc(pay), container.Config{
		Logger: zap.NewNop(), Workers: container.Workers{Min: 4, Max: 4}, Middleware: []longshore.Middleware{once}})
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil { // declares the queue
		return err
	}
	fmt.Println("ready")
	<-ctx.Done()
	return c.Stop(context.WithoutCancel(ctx))
}

// pay is the effect: twice would be seen in the table.
func pay(ctx context.Context, d *longshore.Delivery) error {
	tx, err := mutex.TxFrom(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE orders SET paid = paid + 1 WHERE id = ?`, string(d.Body)); err != nil {
		return err
	}
	select {
	case <-time.After(time.Duration(rand.IntN(5)) * time.Millisecond): //nolint:gosec // a bank of varying speed
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
