package amqp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/internal/rabbitapi"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// AMQP does not report a queue's type, its arguments or the policies on it. The
// management API does, where Config.Management names it.

// askTime bounds one look, so that an API which does not answer delays no opening.
const askTime = 2 * time.Second

// queueFacts is what the management API knows of a queue.
type queueFacts struct {
	Type      string         `json:"type"`
	Arguments map[string]any `json:"arguments"`
	// Limit is the delivery limit in force: a number, or "unlimited". Up to 3.13, and in
	// the first seconds of a queue, it is missing.
	Limit any `json:"delivery_limit"`
	// Policy is what policies set, an empty list for none on some versions. It is missing
	// in the first seconds of a queue.
	Policy json.RawMessage `json:"effective_policy_definition"`
}

// policy is the policy in force; nil where the API writes a list in place of an object, which
// means that there is none.
func (f *queueFacts) policy() map[string]any {
	var p map[string]any
	if json.Unmarshal(f.Policy, &p) != nil {
		return nil
	}
	return p
}

// jsonNumber reads a number of a JSON document.
func jsonNumber(v any) (int64, bool) {
	f, ok := v.(float64)
	return int64(f), ok
}

// managementURL reads Config.Management.
func managementURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, conn.BadAddress(problem.Bad("Management", "write http://host:15672 or https://host:15671; to log in as another user, put user:password@ before the host",
			"is not an http or https URL")) // err would show a password
	}
	return u, nil
}

// factsOf asks about a queue; nil without an error if no such queue.
func (s *settings) factsOf(ctx context.Context, queue string) (*queueFacts, error) {
	f := &queueFacts{}
	found, err := s.askManagement(ctx, f, nil, "queues", s.addr.VHost, queue)
	if err != nil || !found {
		return nil, err
	}
	return f, nil
}

// askManagement decodes what the management API has at a path; false if it has nothing.
func (s *settings) askManagement(ctx context.Context, into any, query url.Values, path ...string) (bool, error) {
	base, err := managementURL(s.Management)
	if err != nil {
		return false, err
	}
	c := rabbitapi.Client{Base: base, User: s.User, Hint: "correct Management; the user needs the tag management"}
	if base.User != nil {
		c.User = base.User.Username()
		c.Password, _ = base.User.Password()
	} else if c.Password, err = s.Password.Get(ctx); err != nil {
		return false, err
	}
	few := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if s.TLS != nil {
		few.TLSClientConfig = s.TLS.Clone()
	}
	defer few.CloseIdleConnections()
	c.HTTP = &http.Client{Transport: few}
	return c.Find(ctx, into, query, path...)
}

// askFacts asks about the queues until the channel is gone. What could not be known is nil;
// the reason is reported once.
func (s *Queue) askFacts(names []string, gone <-chan struct{}, notices *notify.Notifier) []*queueFacts {
	facts := make([]*queueFacts, len(names))
	if s.b.set.Management == "" {
		return facts
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	answered := make(chan struct{})
	defer close(answered)
	wg.Go(func() { // closing does not wait for an answer
		select {
		case <-gone:
			cancel()
		case <-answered:
		}
	})
	for i, name := range names {
		f, err := s.b.set.factsOf(ctx, name)
		if err != nil {
			if ctx.Err() != context.Canceled && s.unasked.CompareAndSwap(false, true) {
				notices.Event(transport.Event{Kind: transport.EventNotice, Err: err, Text: err.Error()})
			}
			return facts
		}
		facts[i] = f
	}
	s.unasked.Store(false)
	return facts
}
