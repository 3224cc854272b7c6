package amqp

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/internal/hosts"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/internal/rabbitapi"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
)

// learnPolicies reads the policies on the source's queues, its dead-letter queue and its
// delay queues, as far as Config.Management shows them: at each opening, so that no retry is
// sent into a queue that could be deleted before it is due. At the first opening it names
// the policies that delete, drop or delay what is kept there.
func (s *Queue) learnPolicies(queues []string, deadLetter string, ordered bool, notices *notify.Notifier) {
	set := &s.b.set
	if set.Management == "" {
		return
	}
	first := !s.opened.Load()
	notice := func(err error, text string) {
		if first {
			notices.Event(transport.Event{Kind: transport.EventNotice, Err: err, Text: text})
		}
	}
	if u, err := managementURL(set.Management); err == nil && u.Scheme == "http" && !hosts.Loopback(u.Hostname()) {
		notice(nil, fmt.Sprintf("the login goes to rabbitmq's management API at %s without TLS: anyone on the network path can read it; write https in Management", u.Host))
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	policies, operator, err := set.policies(ctx)
	if err != nil {
		notice(err, "policies could not be read, which may delete, drop or delay messages of "+s.title()+"; the login needs the tag policymaker")
		return
	}
	s.expiry.note(queues, policies, operator)
	for _, f := range s.cfg.policyFindings(queues, policies, operator, deadLetter, s.Capabilities().Delay && !ordered) {
		notice(nil, f.Text+"; "+f.Hint)
	}
}

// policies reads the policies and the operator policies of the virtual host.
func (s *settings) policies(ctx context.Context) (policies, operator []rabbitapi.Policy, err error) {
	_, err = s.askManagement(ctx, &policies, nil, "policies", s.addr.VHost)
	if err == nil {
		_, err = s.askManagement(ctx, &operator, nil, "operator-policies", s.addr.VHost)
	}
	return policies, operator, err
}

// expiry is what is known about policies that delete unused queues, which decides whether a
// retry may wait in a delay queue.
type expiry struct {
	seen atomic.Bool  // the test queue was deleted: queues do expire, see keepalive
	life atomic.Int64 // how long an unused delay queue lives, by the management API; 0: unlimited, or unknown
}

// note remembers how long policies let an unused delay queue live.
func (e *expiry) note(queues []string, policies, operator []rabbitapi.Policy) {
	life := int64(0)
	for _, q := range queues {
		ms, ok := rabbitapi.Effective(policies, operator, codec.DelayQueue(q, time.Second), string(Classic))["expires"].(float64)
		if d := int64(ms) * int64(time.Millisecond); ok && d > 0 && (life == 0 || d < life) {
			life = d
		}
	}
	e.life.Store(life)
}

// allows reports whether a retry is safe in a delay queue, also while no consumer is open
// that would keep the queue alive. The queue counts as used when it was declared, which is
// repeated after delayFresh.
func (e *expiry) allows(delay time.Duration) bool {
	life := time.Duration(e.life.Load())
	return !e.seen.Load() && (life == 0 || delay+delayFresh < life)
}

// policyFindings judges the queues by their roles; delays says that retries wait in delay queues.
func (c *QueueConfig) policyFindings(queues []string, policies, operator []rabbitapi.Policy, deadLetter string, delays bool) (all []rabbitapi.Finding) {
	kind := string(c.Declare.Type)
	if kind == "" {
		kind = string(Classic)
	}
	judge := func(role rabbitapi.Role, queue, kind string) {
		all = append(all, rabbitapi.Judge(role, queue, rabbitapi.Effective(policies, operator, queue, kind))...)
	}
	for _, q := range queues {
		judge(rabbitapi.Source, q, kind)
		if delays {
			judge(rabbitapi.Delay, codec.DelayQueue(q, time.Second), string(Classic))
		}
	}
	if exchange, queue := parseDest(deadLetter); exchange == "" && queue != "" {
		judge(rabbitapi.DeadLetter, queue, kind)
	}
	return all
}
