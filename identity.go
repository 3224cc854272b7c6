package longshore

// HeaderID is the header in which our publishers write a stable id: [Message.ID], or where
// the producer did not set one an id of their own.
const HeaderID = "longshore-id"

// Identity returns one id per message that stays the same over redelivery,
// for inbox, dedupe and verification: the header [HeaderID], else the broker's
// own stable id (topic, partition and offset on Kafka; queue and message id on
// SQS), else [Message.ID]. It is "" where there is none: RabbitMQ gives its
// messages no identity of their own, so producers must set one.
func Identity(d *Delivery) string {
	if id := d.Received().Headers.String(HeaderID); id != "" {
		return id
	}
	if s := d.Origin.Subscription; s != nil && s.Identify != nil {
		if id := s.Identify(d); id != "" {
			return id
		}
	}
	return d.Received().ID
}
