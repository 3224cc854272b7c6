package bridge

import (
	"encoding/hex"

	"github.com/longshore-go/longshore"
)

// IdentityRule finds the identity of a message, "" if it has none. Two messages must not have
// one identity: consumers with an inbox take the second for a copy of the first.
type IdentityRule func(d *longshore.Delivery) string

// ByIdentity is [longshore.Identity], the default: the header longshore-id, the broker's own
// id (Kafka, SQS), or the producer's message id.
func ByIdentity(d *longshore.Delivery) string { return longshore.Identity(d) }

// ByMessageID is the id that the producer set.
func ByMessageID(d *longshore.Delivery) string { return d.Received().ID }

// ByHeader is a header's value as text; bytes and numbers are read as text as well.
func ByHeader(name string) IdentityRule {
	return func(d *longshore.Delivery) string { return d.Received().Headers.String(name) }
}

// ByBody is a hash of the whole content. It fits messages that never occur twice with the same
// key, headers and body.
func ByBody(d *longshore.Delivery) string {
	sum := digest(d.Received())
	return "body-" + hex.EncodeToString(sum[:])
}
