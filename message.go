package longshore

import "time"

// Message is what a producer sends: a body, its key and its properties. It has
// no place for facts of a delivery; those are in [Delivery].
//
// Key and Body must not be written into once a message was published or
// received: a transport may share the bytes.
type Message struct {
	// ID identifies the message for its producer, who gives two messages two IDs. Our
	// publishers make it the message's [Identity]; without one they make an identity for
	// each message of a Publish, and what is published again is another message.
	ID string

	// Key orders messages: those with equal keys are handled one after the
	// other where a container is configured to. nil is "no key", distinct from empty.
	Key []byte

	// Body is the payload. nil is a tombstone, distinct from an empty body.
	Body []byte

	// Headers are ordered and may repeat a name.
	Headers Headers

	// ContentType is the media type of Body, for example "application/json".
	ContentType string
	// ContentEncoding names the encodings applied to Body, for example "gzip".
	ContentEncoding string
	// Type is the application's name for the kind of message.
	Type string
	// CorrelationID relates a reply to its request.
	CorrelationID string
	// ReplyTo is the destination for replies.
	ReplyTo string
	// AppID names the producing application.
	AppID string
	// UserID names the producing user. RabbitMQ refuses one that is not the
	// connection's own user, so a publisher checks it first.
	UserID string

	// Timestamp is when the message was made. Zero is "not set".
	Timestamp time.Time
	// Expiration is how long the message stays useful after it was published.
	// Zero is "for ever".
	Expiration time.Duration

	// Priority is 0 (lowest, also "not set") to 255.
	Priority uint8
	// DeliveryMode is AMQP's: 1 transient, 2 persistent, 0 not set (then
	// publishers send persistent messages).
	DeliveryMode uint8
}

// Clone returns a copy that shares no slice with m, for code that must change a
// message another owner holds.
func (m *Message) Clone() *Message {
	c := *m
	c.Key = cloneBytes(m.Key)
	c.Body = cloneBytes(m.Body)
	c.Headers = m.Headers.Clone()
	return &c
}

// cloneBytes keeps nil nil and empty empty, which append would not.
func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	c := make([]byte, len(b))
	copy(c, b)
	return c
}
