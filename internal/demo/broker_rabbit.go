package demo

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// expires removes the queues of a demo that was killed before it could.
const expires = 10 * time.Minute

func rabbitRig(cfg Config) (*rig, error) {
	r := &rig{name: "rabbitmq", label: "amqptest"}
	url := cfg.AMQP
	if url == "" {
		server, err := amqptest.Start(amqptest.Config{})
		if err != nil {
			return nil, err
		}
		url, r.stop = server.URL, server.Close
	}
	wire := newCutter()
	broker := amqp.New(url, amqp.Config{Dial: wire.dial, ConnectionName: "longshore demo"})
	orders, dead := queueNames(cfg.Seed)
	declare := amqp.Declare{Type: amqp.Quorum, Arguments: amqp091.Table{"x-expires": expires.Milliseconds()}}
	r.source = broker.Queue(orders, amqp.QueueConfig{Declare: declare})
	r.dead, r.deadTo = broker.Queue(dead, amqp.QueueConfig{}), dead
	r.parkTo = orders + ".parked"
	r.parked = broker.Queue(r.parkTo, amqp.QueueConfig{Declare: declare})
	if cfg.AMQP != "" {
		if d, ok := r.source.(transport.Describer); ok {
			r.label = "rabbitmq at " + d.Describe().Address
		}
	}
	r.cut = wire.cut
	r.remove = func(ctx context.Context) error { return deleteQueues(ctx, url, wire, orders, dead, r.parkTo) }
	return r, nil
}

// deleteQueues uses the client itself: no source deletes.
func deleteQueues(ctx context.Context, url string, wire *cutter, names ...string) error {
	conn, err := amqp091.DialConfig(oneNode(url), amqp091.Config{Dial: func(network, addr string) (net.Conn, error) {
		return wire.dial(ctx, network, addr)
	}})
	if err != nil {
		return errors.New("the demo's queues could not be removed; they expire after " + expires.String())
	}
	defer func() { _ = conn.Close() }() // the deletion was confirmed
	stop := context.AfterFunc(ctx, func() { wire.cut() })
	defer stop()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := ch.QueueDelete(name, false, false, false); err != nil {
			return err
		}
	}
	return nil
}

// oneNode cuts a list of hosts down to the first: the client takes no lists.
func oneNode(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	login := ""
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		login, authority = authority[:at+1], authority[at+1:]
	}
	first, _, _ := strings.Cut(authority, ",")
	return scheme + "://" + login + first + rest[end:]
}
