package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport/memory"
)

const (
	burst  = 8000
	places = 8
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

// downstream lets in so many calls at once; the others wait.
type downstream chan struct{}

func (d downstream) Handle(ctx context.Context, _ *longshore.Delivery) error {
	select {
	case d <- struct{}{}:
		defer func() { <-d }()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-time.After(call):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func run(ctx context.Context, out io.Writer) error {
	broker := memory.New(memory.Config{})
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), make(downstream, places), container.Config{
		Workers:    container.Workers{Min: 1, Max: 100},
		Autoscale:  autoscale.Adaptive{Hold: 5 * time.Second}, // 45 s is better in earnest; this is a short show
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep},
		Logger:     zap.NewNop(),
	})
	if err != nil {
		return err
	}
	events, end := c.Events(64)
	defer end()
	if err := c.Start(ctx); err != nil {
		return err
	}
	if err := publish(ctx, broker); err != nil {
		return err
	}
	tell(ctx, c, events, out)
	return c.Stop(context.WithoutCancel(ctx))
}

func publish(ctx context.Context, broker *memory.Broker) error {
	p, err := broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		return err
	}
	defer func() { _ = p.Close(context.WithoutCancel(ctx)) }()
	msgs := make([]*longshore.Message, burst)
	for i := range msgs {
		msgs[i] = &longshore.Message{Body: fmt.Appendf(nil, "order %d", i)}
	}
	return p.Publish(ctx, "orders", msgs...)
}

// tell writes every change of the workers with its reason, and where the container
// stands every five seconds, until the burst is handled and the workers have left.
func tell(ctx context.Context, c *container.ListenerContainer, events <-chan container.Event, out io.Writer) {
	begin := time.Now()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			if e.Kind == container.EventScaled {
				fmt.Fprintf(out, "%5.1f s  %3d → %3d workers  %s\n", e.Time.Sub(begin).Seconds(), e.From, e.To, e.Reason)
			}
		case now := <-tick.C:
			st := c.Stats()
			fmt.Fprintf(out, "%5.1f s  %d handled, %d workers, limit %q, knee %d\n",
				now.Sub(begin).Seconds(), st.Acked, st.Workers, st.Scaling.Limit, st.Scaling.Knee)
			if st.Acked == burst && st.Workers == st.Min {
				return
			}
		}
	}
}
