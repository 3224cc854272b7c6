package container_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// hole is a source whose broker never answers; err is what its transport makes of
// the end of the time it was given.
type hole struct {
	transport.Source
	err func(ctx context.Context) error
}

func (h hole) Open(ctx context.Context, _ transport.OpenOptions) (transport.Consumer, error) {
	<-ctx.Done()
	return nil, h.err(ctx)
}

// F-B02: whatever a transport calls it, a start that nobody answers is unreachable.
func TestStartThatNobodyAnswers(t *testing.T) {
	ways := map[string]func(context.Context) error{
		"bare": func(ctx context.Context) error { return ctx.Err() },
		"timeout": func(ctx context.Context) error {
			return &longshore.Error{Code: longshore.CodeTimeout, Op: "open", Err: ctx.Err()}
		},
		"unreachable": func(ctx context.Context) error {
			return &longshore.Error{Code: longshore.CodeUnreachable, Op: "open", Err: errors.New("no answer")}
		},
	}
	for name, err := range ways {
		for _, limit := range []time.Duration{time.Second, 2 * time.Minute} { // before and after the first attempt has ended
			t.Run(fmt.Sprint(name, "/", limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					startNobodyAnswers(t, err, limit)
				})
			})
		}
	}
}

func startNobodyAnswers(t *testing.T, err func(context.Context) error, limit time.Duration) {
	t.Helper()
	b := memory.New(memory.Config{})
	c, e := container.New(hole{b.Queue("q", memory.QueueConfig{}), err}, handle(func(*longshore.Delivery) error { return nil }),
		quiet(container.Config{Name: "orders", WaitForBroker: true}))
	if e != nil {
		t.Fatal(e)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errors.New("start timeout"))
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- c.Start(ctx) }()
	wait(limit / 2)
	if st := c.Stats(); !st.Live || st.Ready {
		t.Errorf("while it starts: %+v", st)
	}
	e = <-started
	if longshore.CodeOf(e) != longshore.CodeUnreachable || !errors.Is(e, context.DeadlineExceeded) {
		t.Errorf("%q: code %s", e, longshore.CodeOf(e))
	}
	if st := c.Stats(); st.Ready || c.State() != container.StateStopped {
		t.Errorf("after it: %+v", st)
	}
}

// A start that is called off says nothing about the broker.
func TestStartCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c, err := container.New(hole{b.Queue("q", memory.QueueConfig{}), context.Cause}, handle(func(*longshore.Delivery) error { return nil }),
			quiet(container.Config{Name: "orders"}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		if err = c.Start(ctx); longshore.CodeOf(err) != longshore.CodeState || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
