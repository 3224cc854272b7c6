package amqp

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
)

// This file refuses settings that are valid alone but do not work together, before anything
// is connected. Each error names both settings.

// together looks at a broker's settings, before the URL's are filled in.
func (s *settings) together(l *problem.List) {
	external := s.External || s.addr.External
	if external && s.User != "" {
		l.Conflict("User", nil, "{External}", "the client certificate says who logs in", "leave {User} out, or {External}")
	}
	if external && !s.Password.IsZero() {
		l.Conflict("Password", nil, "{External}", "the client certificate is the login", "leave {Password} out, or {External}")
	}
	switch {
	case s.RenewEvery == 0:
	case external:
		l.Conflict("RenewEvery", nil, "{External}", "there is nothing to renew without a password", "leave {RenewEvery} out")
	case s.Password.IsZero():
		l.Conflict("RenewEvery", nil, "a password in the URL", "that password never changes", "set {Password}, which is read again, or leave {RenewEvery} out")
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
			l.Conflict("TLS", "with "+p.field, "the URL's "+p.inTheURL, "one of the two would be ignored", "say it in one place")
		}
	}
}

// stream reports whether the queue is known to be a stream.
func (c *QueueConfig) stream() bool {
	_, offset := c.Arguments[codec.HeaderOffset]
	return offset || c.Declare.Type == Stream
}

// together looks at how one consumes.
func (c *QueueConfig) together(l *problem.List) {
	if c.Exclusive && c.SingleActive {
		l.Conflict("Exclusive", nil, "{SingleActive}", "an exclusive consumer allows no standby", "leave {Exclusive} out to have one active consumer with standbys")
	}
	if c.Exclusive && c.Declare.Type == Quorum {
		l.Conflict("Exclusive", nil, "{Declare.Type} quorum", "RabbitMQ does not enforce exclusive consumers on quorum queues", "set {SingleActive} instead, or make it a classic queue")
	}
	if _, set := c.Arguments["x-priority"]; set && c.Priority != 0 {
		l.Conflict("Priority", nil, "x-priority in {Arguments}", "they are the same setting", "leave one of them out")
	}
	if c.AutoAck {
		c.besideAutoAck(l)
	}
	if c.Pull {
		c.besidePull(l)
	} else if c.PullInterval != 0 {
		l.Conflict("PullInterval", nil, "push delivery", "only {Pull} polls at intervals", "set {Pull}, or leave {PullInterval} out")
	}
	if c.stream() {
		c.besideStream(l)
	}
	c.Declare.together(l)
}

// besideAutoAck reports settings about acks, which are not sent with AutoAck.
func (c *QueueConfig) besideAutoAck(l *problem.List) {
	if c.Prefetch > 0 && !c.Pull {
		l.Conflict("Prefetch", nil, "{AutoAck}", "without acks the broker sends without limit", "leave {Prefetch} out, or {AutoAck}, or set {Pull}")
	}
	if c.SettleLinger != 0 {
		l.Conflict("SettleLinger", nil, "{AutoAck}", "no acks are sent", "leave {SettleLinger} out, or {AutoAck}")
	}
	if c.DeadLettered {
		l.Conflict("DeadLettered", nil, "{AutoAck}", "the broker cannot dead-letter a message that it has already removed", "leave {DeadLettered} out and set the container's {DeadLetter.To}, or leave {AutoAck} out")
	}
}

// besidePull reports settings of a subscription, which a consumer that pulls does not have.
func (c *QueueConfig) besidePull(l *problem.List) {
	for _, p := range []struct {
		field string
		set   bool
	}{
		{"Exclusive", c.Exclusive}, {"SingleActive", c.SingleActive}, {"Priority", c.Priority != 0}, {"Tag", c.Tag != ""}, {"Arguments", len(c.Arguments) > 0},
	} {
		if p.set {
			l.Conflict(p.field, nil, "{Pull}", "it is a setting of push consumers, which basic.get does not use", "leave {"+p.field+"} out, or {Pull}")
		}
	}
	if c.Declare.AutoDelete {
		l.Conflict("Declare.AutoDelete", nil, "{Pull}", "RabbitMQ deletes the queue with its last consumer, and a polled queue has none", "leave {Declare.AutoDelete} out, or {Pull}")
	}
}

// besideStream: each of these RabbitMQ refuses, or a message would be lost by it.
func (c *QueueConfig) besideStream(l *problem.List) {
	const stream = "a stream (x-stream-offset)"
	for _, p := range []struct {
		field string
		value any
		why   string
		set   bool
	}{
		{"AutoAck", nil, "RabbitMQ sends more of a stream only after acks", c.AutoAck},
		{"Prefetch", "unlimited", "RabbitMQ sends more of a stream only after acks", c.Prefetch == Unlimited},
		{"SingleActive", nil, "every consumer of a stream reads all of it", c.SingleActive},
		{"Priority", nil, "every consumer of a stream reads all of it", c.Priority != 0},
		{"Pull", nil, "RabbitMQ does not support basic.get on a stream", c.Pull && len(c.Arguments) == 0},
		{"DeadLettered", nil, "a stream has no dead-letter exchange", c.DeadLettered},
		{"Declare.Type", c.Declare.Type, "it declares a queue, not a stream", c.Declare.Type == Classic || c.Declare.Type == Quorum},
	} {
		if p.set {
			l.Conflict(p.field, p.value, stream, p.why, "leave one of them out")
		}
	}
}

// together looks at what is created.
func (d *Declare) together(l *problem.List) {
	has := func(name string) bool { _, ok := d.Arguments[name]; return ok }
	if d.Type == Classic {
		for _, name := range []string{"x-delivery-limit", "x-dead-letter-strategy", "x-quorum-initial-group-size"} {
			if has(name) {
				l.Conflict("Declare.Arguments", name, "{Declare.Type} classic", "only quorum queues have it", "leave it out, or set {Declare.Type} to {Quorum}")
			}
		}
	}
	for _, name := range []string{"x-dead-letter-routing-key", "x-dead-letter-strategy"} {
		if has(name) && !has("x-dead-letter-exchange") {
			l.Conflict("Declare.Arguments", name, "a queue without x-dead-letter-exchange", "nothing is dead-lettered there", `add x-dead-letter-exchange; "" is the default exchange`)
		}
	}
	if d.Arguments["x-dead-letter-strategy"] == "at-least-once" && d.Arguments["x-overflow"] != "reject-publish" {
		l.Conflict("Declare.Arguments", "x-dead-letter-strategy at-least-once", "any x-overflow other than reject-publish", "RabbitMQ silently falls back to at-most-once", "add x-overflow: reject-publish")
	}
	kinds := map[string]int{}
	for i, b := range d.Bindings {
		b.checkHash(l, i)
		first, seen := kinds[b.Exchange]
		switch {
		case b.Kind == "" || b.Exchange == "":
		case !seen:
			kinds[b.Exchange] = i
		case d.Bindings[first].Kind != b.Kind:
			l.Conflict(fmt.Sprintf("Declare.Bindings[%d]", i), "of kind "+string(b.Kind), fmt.Sprintf("{Declare.Bindings[%d]} of kind %s", first, d.Bindings[first].Kind),
				"both declare exchange "+problem.Literal(strconv.Quote(b.Exchange)), "give both the same kind, or name another exchange")
		}
	}
}

// together looks at what is bound.
func (s *broadcast) together(l *problem.List) {
	for _, k := range s.cfg.Keys {
		if k != "" && (s.cfg.Kind == Fanout || s.cfg.Kind == HeadersKind) {
			l.Conflict("Keys", nil, "{Kind} "+string(s.cfg.Kind), "this kind of exchange ignores keys, so every message would arrive", "leave {Keys} out, or bind to a direct or topic exchange")
			return
		}
	}
}

// ValidateOpen finds what of a container's wishes these settings cannot serve: a prefetch that
// would starve the workers, and dead letters that lead nowhere, or back here.
func (s *Queue) ValidateOpen(o transport.OpenOptions) error {
	l := &problem.List{Op: "open " + s.title(), Source: s.name()}
	l.Join(s.starves(o))
	s.cfg.servesPerWorker(l, o)
	if o.Native && !s.cfg.capabilities().DeadLetter && !s.cfg.AutoAck {
		l.Conflict("DeadLetter.Policy", "native", problem.Literal(s.title()), "it has no known dead-letter exchange, so RabbitMQ would drop the message",
			"set {DeadLettered} or x-dead-letter-exchange in {Declare.Arguments}, or the container's {DeadLetter.To}")
	}
	if o.Native && s.cfg.AutoAck {
		l.Conflict("DeadLetter.Policy", "native", "{AutoAck}", "the broker cannot dead-letter a message that it has already removed", "set {DeadLetter.To}, or leave {AutoAck} out")
	}
	if o.DeadLetter != "" && s.leadsHere(o.DeadLetter) {
		l.Conflict("DeadLetter.To", strconv.Quote(o.DeadLetter), problem.Literal(s.title()), "dead letters would come back here, over and over", "name another queue")
	}
	return l.Err()
}

// leadsHere reports whether a destination is this source, as far as the settings tell.
func (s *Queue) leadsHere(dest string) bool {
	exchange, key := parseDest(dest)
	switch {
	case s.cast != nil:
		keys := s.cast.keys()
		return exchange == s.cast.exchange && (s.cast.cfg.Kind == Fanout || slices.Contains(keys, "#") || slices.Contains(keys, key))
	case exchange == "":
		return slices.Contains(s.queues, key)
	}
	return slices.ContainsFunc(s.cfg.Declare.Bindings, func(b Binding) bool {
		return b.Exchange == exchange && (b.Kind == Fanout || b.Kind == ConsistentHash || b.Key == key && b.Kind != HeadersKind)
	})
}
