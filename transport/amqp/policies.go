package amqp

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/internal/hosts"
	"github.com/longshore-go/longshore/internal/rabbitapi"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
)

// reportPolicies names, at the first opening, the policies that delete, drop or delay what
// is kept in the source's queues, its dead-letter queue and its delay queues, as far as
// Config.Management shows them.
func (s *Queue) reportPolicies(queues []string, deadLetter string, ordered bool, notices *notifier) {
	set := &s.b.set
	if set.Management == "" || s.opened.Load() {
		return
	}
	notice := func(err error, text string) {
		notices.event(transport.Event{Kind: transport.EventNotice, Err: err, Text: text})
	}
	if u, err := managementURL(set.Management); err == nil && u.Scheme == "http" && !hosts.Loopback(u.Hostname()) {
		notice(nil, fmt.Sprintf("the login goes to rabbitmq's management API at %s without TLS: anybody on the way can read it; write https in Management", u.Host))
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	var policies, operator []rabbitapi.Policy
	_, err := set.askManagement(ctx, &policies, "policies", set.addr.VHost)
	if err == nil {
		_, err = set.askManagement(ctx, &operator, "operator-policies", set.addr.VHost)
	}
	if err != nil {
		notice(err, "policies could not be read, which may delete, drop or delay messages of "+s.title()+"; the login needs the tag policymaker")
		return
	}
	for _, f := range s.policyFindings(queues, policies, operator, deadLetter, ordered) {
		notice(nil, f.Text+"; "+f.Hint)
	}
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
