package urls

import (
	"strings"

	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// amqp://user@host/vhost?queue=name&declare=quorum&prefetch=n&consumers=per_worker; queues=a,b in place of
// queue takes several at once, and exchange=name&kind=topic&keys=a,b everything that is
// published there (amqp.Broadcast). key=header:NAME or key=routing-key says what the key of a
// message is that has no longshore-key. The parameters after these are those of the address,
// which amqp.New reads.
func amqpScheme() scheme {
	return scheme{names: []string{"amqp", "amqps"}, form: "amqp://user@host/vhost?queue=orders",
		params: []string{"queue", "queues", "exchange", "kind", "keys", "declare", "prefetch", "consumers", "key", "browse_counts", "auth_mechanism", "cacertfile", "certfile", "connection_timeout",
			"heartbeat", "keyfile", "server_name_indication"}, open: openAMQP}
}

func openAMQP(a *address, o Options) (transport.Source, error) {
	cfg := amqp.QueueConfig{Prefetch: a.number("prefetch"), Key: a.amqpKey(), BrowseCounts: o.BrowseCounts}
	if exchange := a.take("exchange"); exchange != "" {
		a.beside("exchange", "leave one of them out: every instance has a queue of its own on an exchange", "queue", "queues", "declare", "consumers", "browse_counts")
		cast := amqp.BroadcastConfig{Prefetch: cfg.Prefetch, Key: cfg.Key, Keys: a.list("keys"),
			Kind: amqp.ExchangeKind(a.choice("kind", string(amqp.Direct), string(amqp.Fanout), string(amqp.Topic), string(amqp.HeadersKind)))}
		return amqp.New(a.rest(), amqp.Config{Password: o.Password, Management: o.Management}).Broadcast(exchange, cast), nil
	}
	a.beside("a queue", "add exchange=NAME to read from that exchange, or leave it out", "kind", "keys")
	names := a.list("queues")
	switch {
	case len(names) == 0 && a.values.Get("queue") == "":
		a.bad(problem.Missing, "queue", "is missing", "write ?queue=NAME after the virtual host")
	case len(names) > 0:
		a.beside("queues", "name them all in queues", "queue")
	default:
		names = []string{a.take("queue")}
	}
	cfg.Declare.Type = amqp.QueueType(a.choice("declare", string(amqp.Quorum), string(amqp.Classic)))
	if a.choice("consumers", "one_channel", "per_worker") == "per_worker" {
		cfg.Consumers = amqp.PerWorker
	}
	cfg.BrowseCounts = cfg.BrowseCounts || a.choice("browse_counts", "true", "false") == "true"
	return amqp.New(a.rest(), amqp.Config{Password: o.Password, Management: o.Management}).Queues(cfg, names...), nil
}

// amqpKey takes the place of a message's key, as amqp.QueueConfig has it.
func (a *address) amqpKey() string {
	if !a.values.Has("key") {
		return ""
	}
	text := a.take("key")
	name, isHeader := strings.CutPrefix(text, "header:")
	switch {
	case text == "routing-key":
		return amqp.RoutingKey
	case isHeader && name != "":
		return name
	}
	a.noSuch("key", text, []string{"header:NAME", "routing-key"})
	return ""
}
