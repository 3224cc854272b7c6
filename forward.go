package longshore

import "strings"

// HeaderVia is the header in which a bridge notes which places a message has passed, so that
// two bridges in opposite directions do not send it round. See package bridge.
const HeaderVia = "longshore-via"

// Forwarded returns the message to publish when a delivery is moved to another broker or
// another place: with its key, body and properties, with its [Identity] in [HeaderID] unless
// that is its ID, which publishers write there, and without what counts its failures here. The headers of a dead letter that say why it failed
// stay. The result shares key and body with the delivery, and has headers of its own.
//
// A copy that is sent again because the first outcome was unknown carries the same identity,
// so a consumer with an inbox applies its effects once. That does not hold where Identity is
// empty: RabbitMQ's messages have none unless their producer sets one.
func Forwarded(d *Delivery) *Message {
	m := *d.Received()
	headers := make(Headers, 0, len(m.Headers)+2)
	for _, h := range m.Headers {
		if !countsFailures(h.Name) {
			headers = append(headers, h)
		}
	}
	if id := Identity(d); id != "" && id != m.ID && !headers.Has(HeaderID) {
		headers = append(headers, Header{Name: HeaderID, Value: id})
	}
	m.Headers = headers
	return &m
}

// countsFailures reports whether a header would shorten the message's life in its next place:
// attempts and deaths that brokers and frameworks count in headers.
func countsFailures(name string) bool {
	switch name {
	case "longshore-attempt", "x-death", "x-delivery-count", "x-acquired-count":
		return true
	}
	for _, prefix := range []string{"x-first-death-", "x-last-death-", "retry_topic-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
