package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

const (
	orders = 5000
	call   = 20 * time.Millisecond
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// legacy is a downstream that breaks under more calls than it bears.
type legacy struct {
	mu            sync.Mutex
	bears         int
	running, most int
	done, broken  int
}

func (l *legacy) Handle(ctx context.Context, _ *longshore.Delivery) error {
	l.mu.Lock()
	l.running++
	l.most = max(l.most, l.running)
	if l.running > l.bears {
		l.broken++
	}
	l.mu.Unlock()
	timer := time.NewTimer(call)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.done++
	return context.Cause(ctx)
}

// look returns the most calls at once since the last look, what is done and what
// broke.
func (l *legacy) look() (most, done, broken int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	most, l.most = l.most, l.running
	return most, l.done, l.broken
}

// instance is one process of the service; a real one has a broker of its own here.
type instance struct {
	c     *container.ListenerContainer
	fleet *throttle.Fleet
}

func start(ctx context.Context, broker *memory.Broker, name string, down *legacy) (*instance, error) {
	limit := throttle.NewPermits(2) // what this instance may do before it hears anything
	fleet, err := throttle.NewFleet(broker.Broadcast("throttle", memory.BroadcastConfig{Retain: true}), throttle.FleetConfig{
		Scope: "shop", Instance: name,
		Keys: []throttle.Key{{ID: "2026", Secret: transport.Static("only the shop knows this")}},
	})
	if err != nil {
		return nil, err
	}
	fleet.Add("orders", limit)
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), down, container.Config{
		Throttle: limit, Workers: container.Workers{Min: 30, Max: 30}, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	if err := fleet.Start(ctx); err != nil { // first: the container begins with what is in force
		return nil, err
	}
	return &instance{c, fleet}, c.Start(ctx)
}

func (in *instance) stop(ctx context.Context) error {
	return errors.Join(in.c.Stop(ctx), in.fleet.Stop(ctx))
}

func run(ctx context.Context, out io.Writer) error {
	broker := memory.New(memory.Config{})
	down := &legacy{bears: 6}
	if err := publish(ctx, broker); err != nil {
		return err
	}
	var all []*instance
	defer func() {
		for _, in := range all {
			_ = in.stop(context.WithoutCancel(ctx)) // on the way out after an error
		}
	}()
	for _, name := range []string{"shop-1", "shop-2", "shop-3"} {
		in, err := start(ctx, broker, name, down)
		if err != nil {
			return err
		}
		all = append(all, in)
	}
	if err := steer(ctx, out, all, down); err != nil {
		return err
	}
	_, done, broken := down.look()
	for done < orders {
		if err := pause(ctx, call); err != nil {
			return err
		}
		_, done, broken = down.look()
	}
	fmt.Fprintf(out, "%d orders handled, %d broken, redelivered %d\n", done, broken, redelivered(all))
	return nil
}

// steer is what the operator does, once for all three.
func steer(ctx context.Context, out io.Writer, all []*instance, down *legacy) error {
	six, none, many := 6, 0, 24
	for _, step := range []struct {
		say   string
		d     throttle.Directive
		bears int
		wait  time.Duration
	}{
		{"a total of 6 for all", throttle.Directive{Permits: &six, Share: throttle.Total, Reason: "the legacy ledger bears 6"}, 6, 2 * time.Second},
		{"0: the ledger is replaced", throttle.Directive{Permits: &none, Reason: "the ledger is replaced"}, 6, time.Second},
		{"a total of 24 for all", throttle.Directive{Permits: &many, Share: throttle.Total, Reason: "the new ledger bears 24"}, 24, 8 * time.Second},
	} {
		down.mu.Lock()
		down.bears = max(down.bears, step.bears)
		down.mu.Unlock()
		step.d.Issuer = "anna"
		issued, err := all[0].fleet.Issue(ctx, step.d)
		if err != nil {
			return err
		}
		if err := pause(ctx, 2*call); err != nil { // what ran goes on
			return err
		}
		down.look()
		_, before, _ := down.look()
		if err := pause(ctx, step.wait); err != nil {
			return err
		}
		most, after, _ := down.look()
		fmt.Fprintf(out, "%-26s %d instances obeyed; at most %2d calls at once, %4d orders in %v\n", step.say, len(issued.Obeyed), most, after-before, step.wait)
	}
	return nil
}

func publish(ctx context.Context, broker *memory.Broker) (err error) {
	p, err := broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(ctx)) }()
	msgs := make([]*longshore.Message, orders)
	for i := range msgs {
		msgs[i] = &longshore.Message{Body: fmt.Appendf(nil, "order %d", i)}
	}
	return p.Publish(ctx, "orders", msgs...)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func redelivered(all []*instance) (n int64) {
	for _, in := range all {
		n += in.c.Stats().Redelivered
	}
	return n
}
