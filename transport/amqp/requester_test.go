package amqp_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// answering consumes "requests" with a handler until the test ends; each runs by itself.
func answering(t *testing.T, b *amqp.Broker, answer func(context.Context, *longshore.Delivery) (*longshore.Message, error)) {
	t.Helper()
	c, err := b.Queue("requests", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}).Open(t.Context(), transport.OpenOptions{Window: 100})
	if err != nil {
		t.Fatal(err)
	}
	pub, err := b.Publisher(amqp.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h := amqp.Replier(pub, answer)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			ds, err := c.Receive(ctx, 100)
			if err != nil {
				return
			}
			for _, d := range ds {
				wg.Go(func() {
					work := context.WithoutCancel(ctx) // the request may have its reply before the reply is confirmed
					if err := h.Handle(work, d); err != nil {
						t.Error(err)
					}
					_ = d.Ack(work)
				})
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		end, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(c.Close(end), pub.Close(end)); err != nil {
			t.Error(err)
		}
	})
}

func requester(t *testing.T, b *amqp.Broker, cfg amqp.RequesterConfig) *amqp.Requester {
	t.Helper()
	r, err := b.Requester(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestRequestsGetTheirOwnReplies(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		b := amqp.New(s.direct, amqp.Config{})
		answering(t, b, func(_ context.Context, d *longshore.Delivery) (*longshore.Message, error) {
			return &longshore.Message{Body: append([]byte("re: "), d.Body...), ContentType: "text/plain", Headers: longshore.Headers{{Name: "a", Value: "b"}}}, nil
		})
		r := requester(t, b, amqp.RequesterConfig{Timeout: patience})
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				got, err := r.Request(t.Context(), "requests", &longshore.Message{Body: fmt.Append(nil, i), CorrelationID: fmt.Sprint("mine-", i)})
				if err != nil {
					t.Error(err)
					return
				}
				if string(got.Body) != fmt.Sprint("re: ", i) || got.CorrelationID != fmt.Sprint("mine-", i) || got.ContentType != "text/plain" || got.Headers.String("a") != "b" {
					t.Errorf("%d: %+v", i, got)
				}
			})
		}
		wg.Wait()
		if st := r.Stats(); st != (amqp.RequesterStats{Replied: 50}) {
			t.Errorf("%+v", st)
		}
	})
}

func TestReplyThatComesTooLateIsCounted(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		b := amqp.New(s.direct, amqp.Config{})
		hold := make(chan struct{})
		answering(t, b, func(_ context.Context, d *longshore.Delivery) (*longshore.Message, error) {
			if string(d.Body) == "slow" {
				<-hold
			}
			return &longshore.Message{Body: []byte("done")}, nil
		})
		r := requester(t, b, amqp.RequesterConfig{Timeout: patience})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.Request(ctx, "requests", &longshore.Message{Body: []byte("slow")})
		if !errors.Is(err, longshore.CodeTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		close(hold)
		happens(t, func() bool { return r.Stats().Late == 1 })
		if got, err := r.Request(t.Context(), "requests", &longshore.Message{}); err != nil || string(got.Body) != "done" {
			t.Errorf("after it: %v %v", got, err)
		}
		if st := r.Stats(); st.TimedOut != 1 || st.Late != 1 || st.Replied != 1 {
			t.Errorf("%+v", st)
		}
	})
}

func TestConnectionThatEndsBeforeTheReply(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		asked := make(chan struct{}, 1)
		hold := make(chan struct{})
		answering(t, amqp.New(s.direct, amqp.Config{}), func(_ context.Context, d *longshore.Delivery) (*longshore.Message, error) {
			if string(d.Body) == "slow" {
				asked <- struct{}{}
				<-hold
			}
			return &longshore.Message{Body: []byte("done")}, nil // to nobody: no failure of the handler
		})
		r := requester(t, amqp.New(s.url, amqp.Config{}), amqp.RequesterConfig{Timeout: patience})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := r.Request(t.Context(), "requests", &longshore.Message{Body: []byte("slow")})
			if !errors.Is(err, longshore.CodeConnLost) {
				t.Errorf("%v", err)
			}
		})
		<-asked
		s.proxy.CutAll()
		wg.Wait()
		close(hold)
		if st := r.Stats(); st.Lost != 1 {
			t.Errorf("%+v", st)
		}
		happens(t, func() bool {
			got, err := r.Request(t.Context(), "requests", &longshore.Message{})
			return err == nil && string(got.Body) == "done"
		})
	})
}

func TestRequestThatNobodyTakes(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		r := requester(t, amqp.New(s.direct, amqp.Config{}), amqp.RequesterConfig{Timeout: patience})
		if _, err := r.Request(t.Context(), "nowhere", &longshore.Message{}); !errors.Is(err, longshore.CodeUnroutable) {
			t.Errorf("%v", err)
		}
		if _, err := r.Request(t.Context(), "", &longshore.Message{}); !errors.Is(err, longshore.CodeConfig) {
			t.Errorf("%v", err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := r.Request(t.Context(), "requests", &longshore.Message{}); !errors.Is(err, longshore.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
	if _, err := amqp.New("amqp://h", amqp.Config{}).Requester(amqp.RequesterConfig{Timeout: -1}); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("%v", err)
	}
}

// happens waits for what happens soon.
func happens(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
	}
}
