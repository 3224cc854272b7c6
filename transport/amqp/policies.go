package amqp

import (
	"context"
	"fmt"
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
		notice(nil, fmt.Sprintf("the login goes to rabbitmq's management API at %s without TLS: anybody on the way can read it; write https in Management", u.Host))
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	policies, operator, err := set.policies(ctx)
	if err != nil {
		notice(err, "policies could not be read, which may delete, drop or delay messages of "+s.title()+"; the login needs the tag policymaker")
		return
	}
	s.noteExpiry(queues, policies, operator)
	for _, f := range s.policyFindings(queues, policies, operator, deadLetter, ordered) {
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

// noteExpiry remembers how long policies let an unused delay queue live.
func (s *Queue) noteExpiry(queues []string, policies, operator []rabbitapi.Policy) {
	life := int64(0)
	for _, q := range queues {
		ms, ok := rabbitapi.Effective(policies, operator, codec.DelayQueue(q, time.Second), string(Classic))["expires"].(float64)
		if d := int64(ms) * int64(time.Millisecond); ok && d > 0 && (life == 0 || d < life) {
			life = d
		}
	}
	s.unused.Store(life)
}

// mayWait reports whether a retry is safe in a delay queue, also while no consumer is open
// that would keep the queue alive. The queue counts as used when it was declared, which is
// repeated after delayFresh.
func (s *Queue) mayWait(delay time.Duration) bool {
	life := time.Duration(s.unused.Load())
	return !s.expires.Load() && (life == 0 || delay+delayFresh < life)
}

// policyFindings judges the queues by their roles.
func (s *Queue) policyFindings(queues []string, policies, operator []rabbitapi.Policy, deadLetter string, ordered bool) (all []rabbitapi.Finding) {
	kind := string(s.cfg.Declare.Type)
	if kind == "" {
		kind = string(Classic)
	}
	judge := func(role rabbitapi.Role, queue, kind string) {
		all = append(all, rabbitapi.Judge(role, queue, rabbitapi.Effective(policies, operator, queue, kind))...)
	}
	for _, q := range queues {
		judge(rabbitapi.Source, q, kind)
		if s.Capabilities().Delay && !ordered {
			judge(rabbitapi.Delay, codec.DelayQueue(q, time.Second), string(Classic))
		}
	}
	if exchange, queue := parseDest(deadLetter); exchange == "" && queue != "" {
		judge(rabbitapi.DeadLetter, queue, kind)
	}
	return all
}
