package amqptest

import "regexp"

// vhost holds exchanges and queues. Guarded by Server.mu.
type vhost struct {
	s         *Server
	name      string
	exchanges map[string]*exchange
	queues    map[string]*queue
	replyTo   map[string]*channel // direct reply-to names
}

func newVHost(s *Server, name string) *vhost {
	vh := &vhost{s: s, name: name, exchanges: map[string]*exchange{}, queues: map[string]*queue{}}
	predeclared := []struct{ name, kind string }{
		{"", "direct"}, {"amq.direct", "direct"}, {"amq.fanout", "fanout"}, {"amq.topic", "topic"},
		{"amq.headers", "headers"}, {"amq.match", "headers"},
	}
	for _, x := range predeclared {
		vh.exchanges[x.name] = newExchange(vh, x.name, x.kind)
		vh.exchanges[x.name].durable = true
	}
	return vh
}

// mayConfigure, mayWrite and mayRead check the user's permissions; kind is
// "queue" or "exchange".
func (ch *channel) mayConfigure(kind, name string) error {
	return ch.may(ch.conn.user.configure, kind, name)
}

func (ch *channel) mayWrite(kind, name string) error {
	return ch.may(ch.conn.user.write, kind, name)
}

func (ch *channel) mayRead(kind, name string) error {
	return ch.may(ch.conn.user.read, kind, name)
}

func (ch *channel) may(allowed *regexp.Regexp, kind, name string) error {
	if allowed == nil {
		return nil
	}
	shown := name
	if kind == "exchange" && name == "" {
		name, shown = "amq.default", "amq.default"
	}
	if allowed.MatchString(name) {
		return nil
	}
	return softErr(codeAccessRefused, "access to %s '%s' in vhost '%s' refused for user '%s'", kind, shown, ch.conn.vhost.name, ch.conn.user.Name)
}
