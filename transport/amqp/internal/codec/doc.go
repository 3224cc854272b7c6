// Package codec turns messages into AMQP frames and back. It does no I/O and knows no
// channel: what a header means, which attempt a delivery is, and how a copy differs from
// its original are decided here and tested without a broker.
//
//	codec.Decode(d, raw, "customer")       // the key is in the header "customer"
//	d.Attempt = codec.Attempt(raw, "orders")
//	p, err := codec.Encode(&d.Message, "shop")
//
// In reading order: message.go has Decode and Encode; headers.go maps header values to the
// types that AMQP has; envelope.go packs what AMQP has no place for into one header;
// attempt.go reads the attempt and the returns of a delivery; copy.go makes the copy that
// takes the place of a delivery; delayname.go names the queues in which copies wait.
package codec
