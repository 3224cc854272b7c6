package browsertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
)

// incident is something that is wrong with a service, and what of it the overview and the
// container's view must show within ten seconds, without a command.
type incident struct {
	name     string
	handle   longshore.HandlerFunc
	edit     func(*container.Config)
	stage    func(*service)
	wait     time.Duration // until it is one
	overview []string
	view     []string
}

func incidents() []incident {
	hang := func(ctx context.Context, d *longshore.Delivery) error {
		if string(d.Key) == "c-hang" || string(d.Key) == "c-hot" {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	keyed := func(key string) func(int, *longshore.Message) {
		return func(i int, m *longshore.Message) {
			m.Key = []byte(key)
			m.Headers.Set(longshore.HeaderID, fmt.Sprintf("%s-%d", key, i))
		}
	}
	return []incident{
		{name: "a handler hangs", handle: hang, wait: 8 * time.Second,
			stage:    func(s *service) { s.publish(1, keyed("c-hang")) },
			overview: []string{"1 of 1 container needs you", "Handlers hang", "c-hang", "has not returned for"},
			view:     []string{"c-hang-0", "▲ 1", "incidents_test.go", "the oldest call has run for"}},
		{name: "a hot key", handle: hang,
			stage:    func(s *service) { s.publish(12, keyed("c-hot")) },
			overview: []string{"orders"},
			view:     []string{"Hot keys", "c-hot", "running for"}},
		{name: "every call fails", handle: func(context.Context, *longshore.Delivery) error { return errBank },
			stage:    func(s *service) { s.publish(20, nil) },
			overview: []string{"Most calls fail", "the bank is closed"},
			view:     []string{"the bank is closed", "Failures per second", "dead"}},
		{name: "throttled by somebody", handle: func(ctx context.Context, _ *longshore.Delivery) error {
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
			}
			return nil
		}, stage: func(s *service) {
			one := 1
			s.limit.Override(throttle.Override{Permits: &one, By: "carol", Reason: "month end", Until: time.Now().Add(time.Hour)})
			s.publish(60, nil)
		}, overview: []string{"Throttled", "set by carol (month end)", "Clear the limit"}, view: []string{"1 at once", "by carol (month end) until", "Clear the limit"}},
		{name: "paused by somebody", handle: done,
			stage: func(s *service) {
				s.c.PauseBy(longshore.Intervention{By: "carol", Reason: "deploy"})
				s.publish(5, nil)
			},
			overview: []string{"Paused", "paused by carol (deploy)", "Resume"},
			view:     []string{"paused by carol (deploy)", "Resume"}},
		{name: "held by a middleware", handle: done, edit: func(c *container.Config) { c.Middleware = []longshore.Middleware{shut{}} },
			stage:    func(s *service) { s.publish(5, nil) },
			overview: []string{"Held by a middleware", "bank guard"},
			view:     []string{"bank guard"}},
		{name: "nothing ever came", handle: done, wait: 8 * time.Second, stage: func(*service) {},
			overview: []string{"Nothing ever came", "nothing was ever received from memory orders"},
			view:     []string{"last message", "never", "memory · queue orders"}},
		{name: "retries pile up", handle: func(context.Context, *longshore.Delivery) error { return longshore.Retry(errBank, 40*time.Second) },
			edit: func(c *container.Config) { c.Redelivery.Backoff.Max = 2 * time.Hour },
			stage: func(s *service) {
				s.publish(30, func(i int, m *longshore.Message) { m.Key = fmt.Appendf(nil, "c-%d", i) })
			},
			overview: []string{"Most calls fail"},
			view:     []string{"Retry now", "in 3", "2 of 3"}},
	}
}

// shut is a middleware that holds the intake, as a breaker that is open.
type shut struct{}

func (shut) Name() string                                  { return "bank guard" }
func (shut) Wrap(next longshore.Handler) longshore.Handler { return next }

// Watch holds until the test ends.
func (shut) Watch(changed func(held bool, reason string)) (stop func()) {
	changed(true, "the bank is down")
	return func() {}
}

// Each incident is on the page within ten seconds of being one.
func TestTenSecondsPerIncident(t *testing.T) {
	for _, in := range incidents() {
		t.Run(in.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, in.handle, func(c *container.Config) {
				if in.edit != nil {
					in.edit(c)
				}
			})
			p := s.logIn("")
			in.stage(s)
			end := time.Now().Add(in.wait + 10*time.Second)
			for _, view := range []struct {
				route string
				texts []string
			}{{"/", in.overview}, {"/c/orders", in.view}} {
				js[any](p, "location.hash = '"+view.route+"'")
				for _, text := range view.texts {
					p.within(max(time.Until(end), time.Second), fmt.Sprintf("document.body.innerText.includes(%q)", text))
				}
			}
		})
	}
}
