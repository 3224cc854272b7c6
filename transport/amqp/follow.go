package amqp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

var _ transport.Follower = (*Queue)(nil)

// maxFollowed is how many copies wait for a follower that does not read: the oldest go then, so
// that a forgotten one does not fill the broker's memory.
const maxFollowed = 10_000

// Follow returns a source of copies of the messages that arrive in the queue from now on: a stream
// is read from its end, and for another queue the copies arrive in a queue of their own, exclusive
// to its connection and bound like the queue, whose bindings the management API names
// (Config.Management). Messages published directly to a queue cannot be copied. A broadcast is
// returned as it is.
func (s *Queue) Follow(ctx context.Context) (copies transport.Source, missing string, err error) {
	op := "follow " + s.title()
	unsupported := func(why, hint string) error {
		return &longshore.Error{Code: longshore.CodeUnsupported, Op: op, Source: s.name(), Err: errors.New(why), Hint: hint}
	}
	switch {
	case s.b.set.problem != nil:
		return nil, "", s.b.set.problem
	case s.cast != nil:
		return s, "", nil
	case len(s.queues) != 1:
		return nil, "", unsupported("it is not one queue", "name one queue")
	case s.config().stream():
		return s.fromEnd(), "", nil
	case s.b.set.Management == "":
		return nil, "", unsupported("RabbitMQ reports the type and the bindings of a queue only through its management API", "set Management, or follow an exchange")
	}
	facts, err := s.b.set.factsOf(ctx, s.queues[0])
	switch {
	case err != nil:
		return nil, "", s.b.set.brokerError(op, s.name(), err)
	case facts == nil:
		return nil, "", &longshore.Error{Code: longshore.CodeNotFound, Op: op, Source: s.name(), Err: errors.New("no such queue"), Hint: "declare it, or check the name and the virtual host"}
	case facts.Type == string(Stream):
		return s.fromEnd(), "", nil
	}
	bindings, skipped, err := s.b.set.bindingsOf(ctx, s.queues[0])
	if err != nil {
		return nil, "", s.b.set.brokerError(op, s.name(), err)
	}
	if len(bindings) == 0 {
		return nil, "", unsupported("messages reach it "+skipped+", and RabbitMQ copies only what goes through a direct, topic, fanout or headers exchange",
			"publish through an exchange that is bound to the queue, or look at waiting messages without following")
	}
	cast := &broadcast{exchange: s.queues[0], bindings: bindings, cfg: BroadcastConfig{Key: s.cfg.Key}}
	return &Queue{b: s.b, cast: cast, cfg: cast.cfg.queue()}, "messages that reach the queue " + skipped + " are not seen", nil
}

// fromEnd reads the stream from what is written next.
func (s *Queue) fromEnd() *Queue {
	cfg := QueueConfig{Key: s.cfg.Key, Arguments: amqp091.Table{"x-stream-offset": "next"}}
	return &Queue{b: s.b, queues: slices.Clone(s.queues), cfg: cfg}
}

// bindingsOf reads the bindings of a queue through which messages can be copied. skipped says by
// which ways messages come that cannot.
func (s *settings) bindingsOf(ctx context.Context, queue string) (bindings []Binding, skipped string, err error) {
	var found []struct {
		Source    string         `json:"source"`
		Key       string         `json:"routing_key"`
		Arguments map[string]any `json:"arguments"`
	}
	if _, err := s.askManagement(ctx, &found, nil, "queues", s.addr.VHost, queue, "bindings"); err != nil {
		return nil, "", err
	}
	ways := []string{"directly, without an exchange"}
	for _, b := range found {
		if b.Source == "" { // the default exchange, to which nothing can be bound
			continue
		}
		var exchange struct {
			Type string `json:"type"`
		}
		if _, err := s.askManagement(ctx, &exchange, nil, "exchanges", s.addr.VHost, b.Source); err != nil {
			return nil, "", err
		}
		// An exchange that shares messages out, by a hash for example, would give ours a share.
		switch ExchangeKind(exchange.Type) {
		case Direct, Fanout, Topic, HeadersKind:
			bindings = append(bindings, Binding{Exchange: b.Source, Key: b.Key, Arguments: table(b.Arguments)})
		default:
			ways = append(ways, fmt.Sprintf("through %s exchange %q", exchange.Type, b.Source))
		}
	}
	return bindings, strings.Join(ways, " or "), nil
}

// table turns JSON into arguments: whole numbers become integers.
func table(object map[string]any) amqp091.Table {
	t := amqp091.Table{}
	for name, v := range object {
		if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			v = int64(f)
		}
		t[name] = v
	}
	return t
}

// limits bound the queue of a follower.
func (s *broadcast) limits() amqp091.Table {
	if s.bindings == nil {
		return nil
	}
	return amqp091.Table{"x-max-length": int32(maxFollowed)}
}
