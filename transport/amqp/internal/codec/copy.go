package codec

import (
	"maps"
	"math"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// Copy is the raw message with our attempt, without what the broker owns. What
// the handler can see of its origin stays the same.
func Copy(raw *amqp091.Delivery, attempt int, login string) amqp091.Publishing {
	p := amqp091.Publishing{MessageId: raw.MessageId, Body: raw.Body, ContentType: raw.ContentType, ContentEncoding: raw.ContentEncoding,
		Type: raw.Type, CorrelationId: raw.CorrelationId, ReplyTo: raw.ReplyTo, AppId: raw.AppId, UserId: raw.UserId,
		Timestamp: raw.Timestamp, Priority: raw.Priority, DeliveryMode: raw.DeliveryMode}
	p.Headers = maps.Clone(raw.Headers)
	if p.Headers == nil {
		p.Headers = amqp091.Table{}
	}
	keep := func(name, value string) {
		if _, ok := p.Headers[name]; !ok && value != "" {
			p.Headers[name] = value
		}
	}
	keep(headerExpiration, raw.Expiration)
	if raw.Exchange != "" {
		keep(headerExchange, raw.Exchange)
	}
	keep(headerRoutingKey, raw.RoutingKey)
	moveAside(&p, login)
	delete(p.Headers, headerAttempt)
	if attempt > 1 {
		p.Headers[headerAttempt] = int32(min(attempt, math.MaxInt32))
	}
	return p
}
