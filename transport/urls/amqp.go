package urls

import (
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// amqp://user@host/vhost?queue=name&declare=quorum&prefetch=n; other parameters
// are those that amqp.New reads.
func amqpScheme() scheme {
	return scheme{names: []string{"amqp", "amqps"}, form: "amqp://user@host/vhost?queue=orders",
		params: []string{"queue", "declare", "prefetch"}, others: true, open: openAMQP}
}

func openAMQP(a *address, o Options) (transport.Source, error) {
	if a.values.Get("queue") == "" {
		a.bad("queue", "is missing", "")
	}
	queue := a.take("queue")
	cfg := amqp.QueueConfig{Prefetch: a.number("prefetch"), BrowseCounts: o.BrowseCounts,
		Declare: amqp.Declare{Type: amqp.QueueType(a.choice("declare", string(amqp.Quorum), string(amqp.Classic)))}}
	return amqp.New(a.rest(), amqp.Config{}).Queue(queue, cfg), nil
}
