package amqp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
)

// This file is about settings that are right by themselves and not together: refused
// before anything is connected, each pair by the names of both.

// clash reports that a setting does not go with another one, and what to do.
type clash func(field, other, why, todo string)

func clashes(op, source string, errs *[]error) clash {
	return func(field, other, why, todo string) {
		*errs = append(*errs, &longshore.Error{Code: longshore.CodeConfig, Op: op, Source: source,
			Err: fmt.Errorf("%s does not go with %s: %s", field, other, why), Hint: todo})
	}
}

// together looks at a broker's settings, before the URL's are filled in.
func (s *settings) together(bad clash) {
	external := s.External || s.addr.External
	if external && s.User != "" {
		bad("User", "External", "the client certificate says who logs in", "leave User out, or External")
	}
	if external && !s.Password.IsZero() {
		bad("Password", "External", "the client certificate is the login", "leave Password out, or External")
	}
	switch {
	case s.RenewEvery == 0:
	case external:
		bad("RenewEvery", "External", "there is no password to renew", "leave RenewEvery out")
	case s.Password.IsZero():
		bad("RenewEvery", "a URL's password", "that one never changes", "set Password, which is asked again, or leave RenewEvery out")
	}
	if s.TLS == nil {
		return
	}
	for _, p := range []struct {
		set             bool
		field, inTheURL string
	}{
		{s.TLS.RootCAs != nil && s.addr.CAFile != "", "RootCAs", "cacertfile"},
		{(s.TLS.Certificates != nil || s.TLS.GetClientCertificate != nil) && s.addr.CertFile != "", "Certificates", "certfile"},
		{s.TLS.ServerName != "" && s.addr.PeerName != "", "ServerName", "server_name_indication"},
	} {
		if p.set {
			bad("TLS with "+p.field, "the URL's "+p.inTheURL, "one of them would be forgotten", "say it in one place")
		}
	}
}

// stream tells whether the queue is known to be a stream.
func (c *QueueConfig) stream() bool {
	_, offset := c.Arguments[codec.HeaderOffset]
	return offset || c.Declare.Type == "stream"
}

// together looks at how one consumes.
func (c *QueueConfig) together(bad clash) {
	if c.Exclusive && c.SingleActive {
		bad("Exclusive", "SingleActive", "an exclusive consumer lets nobody stand by", "leave Exclusive out for one active consumer with others in reserve")
	}
	if c.Exclusive && c.Declare.Type == Quorum {
		bad("Exclusive", "Declare.Type quorum", "RabbitMQ lets others consume beside it from a quorum queue", "set SingleActive instead, or make it a classic queue")
	}
	if _, set := c.Arguments["x-priority"]; set && c.Priority != 0 {
		bad("Priority", "x-priority in Arguments", "they are the same", "leave one of them out")
	}
	if c.AutoAck {
		c.besideAutoAck(bad)
	}
	if c.Pull {
		c.besidePull(bad)
	} else if c.PullInterval != 0 {
		bad("PullInterval", "messages that are sent ahead", "nothing is asked for at intervals without Pull", "set Pull, or leave PullInterval out")
	}
	if c.stream() {
		c.besideStream(bad)
	}
	c.Declare.together(bad)
}

func (c *QueueConfig) besideAutoAck(bad clash) {
	if c.Prefetch > 0 && !c.Pull {
		bad("Prefetch", "AutoAck", "the broker waits for no ack, so it sends without a limit", "leave Prefetch out, or AutoAck, or set Pull")
	}
	if c.SettleLinger != 0 {
		bad("SettleLinger", "AutoAck", "there are no acks to send", "leave SettleLinger out, or AutoAck")
	}
	if c.DeadLettered {
		bad("DeadLettered", "AutoAck", "the broker cannot dead-letter what it has forgotten", "leave DeadLettered out and set the container's DeadLetter.To, or leave AutoAck out")
	}
}

func (c *QueueConfig) besidePull(bad clash) {
	for _, p := range []struct {
		field string
		set   bool
	}{
		{"Exclusive", c.Exclusive}, {"SingleActive", c.SingleActive}, {"Priority", c.Priority != 0}, {"Tag", c.Tag != ""}, {"Arguments", len(c.Arguments) > 0},
	} {
		if p.set {
			bad(p.field, "Pull", "it belongs to a consumer that is sent messages, and basic.get has none", "leave "+p.field+" out, or Pull")
		}
	}
	if c.Declare.AutoDelete {
		bad("Declare.AutoDelete", "Pull", "the queue would go away with its last consumer, and it never has one", "leave Declare.AutoDelete out, or Pull")
	}
}

// besideStream: each of these RabbitMQ refuses, or a message would be lost by it.
func (c *QueueConfig) besideStream(bad clash) {
	const stream = "a stream (x-stream-offset)"
	for _, p := range []struct {
		field, why string
		set        bool
	}{
		{"AutoAck", "a stream is sent on by acks", c.AutoAck},
		{"Prefetch unlimited", "a stream is sent on by acks", c.Prefetch == Unlimited},
		{"SingleActive", "every consumer of a stream reads all of it", c.SingleActive},
		{"Priority", "every consumer of a stream reads all of it", c.Priority != 0},
		{"Pull", "a stream cannot be asked for one message", c.Pull && len(c.Arguments) == 0},
		{"DeadLettered", "a stream has no dead-letter exchange", c.DeadLettered},
		{"Declare.Type " + string(c.Declare.Type), "it makes a queue", c.Declare.Type == Classic || c.Declare.Type == Quorum},
	} {
		if p.set {
			bad(p.field, stream, p.why, "leave one of them out")
		}
	}
}

// together looks at what is created.
func (d *Declare) together(bad clash) {
	has := func(name string) bool { _, ok := d.Arguments[name]; return ok }
	if d.Type == Classic {
		for _, name := range []string{"x-delivery-limit", "x-dead-letter-strategy", "x-quorum-initial-group-size"} {
			if has(name) {
				bad(name+" in Declare.Arguments", "Declare.Type classic", "only quorum queues have it", "leave it out, or set Type to Quorum")
			}
		}
	}
	for _, name := range []string{"x-dead-letter-routing-key", "x-dead-letter-strategy"} {
		if has(name) && !has("x-dead-letter-exchange") {
			bad(name+" in Declare.Arguments", "a queue without x-dead-letter-exchange", "nothing is dead-lettered there", `add x-dead-letter-exchange; "" is the default exchange`)
		}
	}
	if d.Arguments["x-dead-letter-strategy"] == "at-least-once" && d.Arguments["x-overflow"] != "reject-publish" {
		bad("x-dead-letter-strategy at-least-once in Declare.Arguments", "another x-overflow than reject-publish", "RabbitMQ then falls back to at-most-once, and only its log says so", "add x-overflow: reject-publish")
	}
	kinds := map[string]int{}
	for i, b := range d.Bindings {
		first, seen := kinds[b.Exchange]
		switch {
		case b.Kind == "" || b.Exchange == "":
		case !seen:
			kinds[b.Exchange] = i
		case d.Bindings[first].Kind != b.Kind:
			bad(fmt.Sprintf("Declare.Bindings[%d] (%s)", i, b.Kind), fmt.Sprintf("Declare.Bindings[%d] (%s)", first, d.Bindings[first].Kind),
				fmt.Sprintf("both declare exchange %q", b.Exchange), "give them the same kind, or another exchange")
		}
	}
}

// together looks at what is bound.
func (s *broadcast) together(bad clash) {
	for _, k := range s.cfg.Keys {
		if k != "" && (s.cfg.Kind == Fanout || s.cfg.Kind == HeadersKind) {
			bad("Keys", "Kind "+string(s.cfg.Kind), "such an exchange looks at no key, everything would come", "leave Keys out, or bind to a direct or topic exchange")
			return
		}
	}
}

// ValidateOpen finds what of a container's wishes these settings cannot serve: a prefetch that
// would starve the workers, and dead letters that lead nowhere, or back here.
func (s *queueSource) ValidateOpen(o transport.OpenOptions) error {
	var errs []error
	if err := s.starves(o); err != nil {
		errs = append(errs, err)
	}
	bad := clashes("open "+s.title(), s.name(), &errs)
	if o.Native && !s.cfg.capabilities().DeadLetter && !s.cfg.AutoAck {
		bad("DeadLetter.Policy native", s.title(), "no dead-letter exchange of it is known, so RabbitMQ would drop the message",
			"set DeadLettered or x-dead-letter-exchange in Declare.Arguments, or the container's DeadLetter.To")
	}
	if o.Native && s.cfg.AutoAck {
		bad("DeadLetter.Policy native", "AutoAck", "the broker cannot dead-letter what it has forgotten", "set DeadLetter.To, or leave AutoAck out")
	}
	if o.DeadLetter != "" && s.leadsHere(o.DeadLetter) {
		bad(fmt.Sprintf("DeadLetter.To %q", o.DeadLetter), s.title(), "what failed for the last time would come here again, for ever", "name another queue")
	}
	return errors.Join(errs...)
}

// leadsHere tells whether a destination is this source, as far as the settings tell.
func (s *queueSource) leadsHere(dest string) bool {
	exchange, key := parseDest(dest)
	switch {
	case s.cast != nil:
		keys := s.cast.keys()
		return exchange == s.cast.exchange && (s.cast.cfg.Kind == Fanout || slices.Contains(keys, "#") || slices.Contains(keys, key))
	case exchange == "":
		return slices.Contains(s.queues, key)
	}
	return slices.ContainsFunc(s.cfg.Declare.Bindings, func(b Binding) bool {
		return b.Exchange == exchange && (b.Kind == Fanout || b.Key == key && b.Kind != HeadersKind)
	})
}
