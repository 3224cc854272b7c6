package container_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// telling is a source whose consumer tells, when it is closed, what is lost by that.
type telling struct{ transport.Source }

func (s telling) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	return &tellingConsumer{Consumer: c, obs: o.Observer}, err
}

type tellingConsumer struct {
	transport.Consumer
	obs transport.Observer
	out []*longshore.Delivery
}

func (c *tellingConsumer) Receive(ctx context.Context, most int) ([]*longshore.Delivery, error) {
	ds, err := c.Consumer.Receive(ctx, most)
	c.out = append(c.out, ds...)
	return ds, err
}

func (c *tellingConsumer) Close(ctx context.Context) error {
	var lost []*longshore.Delivery
	for _, d := range c.out {
		if d.Lose(longshore.ErrLost) {
			lost = append(lost, d)
		}
	}
	c.obs.Lost(lost, longshore.ErrLost)
	return c.Consumer.Close(ctx)
}

// What follows a handler that does not return goes back with the consumer's end; what
// the handler has is abandoned. Both are in the report once.
func TestDrainReportOfWhatFollowsADeafHandler(t *testing.T) {
	for _, counts := range []bool{false, true} {
		for _, order := range []container.Order{container.Unordered, container.ByKey} {
			for _, settle := range []container.Settle{container.SettleAuto, container.SettleManual} {
				for _, tells := range []bool{false, true} {
					t.Run(fmt.Sprintf("counts returns %t, order %s, by hand %t, told %t", counts, order, settle == container.SettleManual, tells), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							b := memory.New(memory.Config{})
							publish(t, b, "q", "a:1", "a:2", "a:3", "b:1", "b:2")
							src := b.Queue("q", memory.QueueConfig{CountsReturns: counts})
							if tells {
								src = telling{src}
							}
							end := make(chan struct{})
							defer synctest.Wait()
							defer close(end)
							c := start(t, src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
								if settle == container.SettleAuto {
									<-end
								}
								return nil // by hand: never settled
							}), container.Config{Order: order, Settle: settle, DrainTimeout: time.Second, Workers: container.Workers{Min: 2, Max: 2}})
							wait(100 * time.Millisecond)
							stopBadly(t, c)
							rep, running := c.Report(), 2
							if order == container.Unordered && settle == container.SettleManual {
								running = rep.Abandoned // as many as the workers had taken
							}
							if rep.Abandoned != running || rep.Released != 5-running || rep.Completed+rep.Lost != 0 {
								t.Errorf("%d are with handlers, %d follow: %v", running, 5-running, rep)
							}
							if n := c.Stats().Buffered; n != 0 {
								t.Errorf("%d wait in a closed transport", n)
							}
						})
					})
				}
			}
		}
	}
}

func stopBadly(t *testing.T, c *container.ListenerContainer) {
	t.Helper()
	if err := c.Stop(context.Background()); !errors.Is(err, longshore.CodeDrain) {
		t.Errorf("stop: %v", err)
	}
}

// F-N04: what the broker could not be told of is in the report, though all was settled.
func TestDrainReportOfWhatIsHandledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "1")
		done := make(chan struct{})
		c := start(t, forgetful{b.Queue("q", memory.QueueConfig{})}, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
			close(done)
			return nil
		}), container.Config{})
		<-done
		if err := c.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
		if rep := c.Report(); rep.Repeats != 3 || !strings.Contains(rep.String(), "3 that are done will be handled again") {
			t.Errorf("%v", rep)
		}
	})
}

// forgetful is a source whose broker does not learn of three that are done.
type forgetful struct{ transport.Source }

func (s forgetful) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	return forgetfulConsumer{c, o.Observer}, err
}

type forgetfulConsumer struct {
	transport.Consumer
	obs transport.Observer
}

func (c forgetfulConsumer) Close(ctx context.Context) error {
	c.obs.Event(transport.Event{Kind: transport.EventNotice, Repeats: 3, Text: "three come again"})
	return c.Consumer.Close(ctx)
}
