package urls

import (
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// amqp://user@host/vhost?queue=name&declare=quorum&prefetch=n; the parameters after
// these are those of the address, which amqp.New reads.
func amqpScheme() scheme {
	return scheme{names: []string{"amqp", "amqps"}, form: "amqp://user@host/vhost?queue=orders",
		params: []string{"queue", "declare", "prefetch", "auth_mechanism", "cacertfile", "certfile", "connection_timeout",
			"heartbeat", "keyfile", "server_name_indication"}, open: openAMQP}
}

func openAMQP(a *address, o Options) (transport.Source, error) {
	if a.values.Get("queue") == "" {
		a.bad("queue", "is missing", "write ?queue=NAME behind the virtual host")
	}
	queue := a.take("queue")
	cfg := amqp.QueueConfig{Prefetch: a.number("prefetch"), BrowseCounts: o.BrowseCounts,
		Declare: amqp.Declare{Type: amqp.QueueType(a.choice("declare", string(amqp.Quorum), string(amqp.Classic)))}}
	return amqp.New(a.rest(), amqp.Config{Password: o.Password}).Queue(queue, cfg), nil
}
