package bridge

import (
	"encoding/hex"
	"strconv"

	"github.com/longshore-go/longshore"
)

// IdentityRule finds the identity of a message, "" if it has none. Two messages must not have
// one identity: consumers with an inbox take the second for a copy of the first.
type IdentityRule func(d *longshore.Delivery) string

// at is the default rule: the header longshore-id, the broker's own id of the message together
// with the place it comes from, or the producer's message id. The place is part of it because
// two brokers may give equal ids to two messages.
func at(place uint64) IdentityRule {
	suffix := "@" + strconv.FormatUint(place, 36)
	return func(d *longshore.Delivery) string {
		s := d.Origin.Subscription
		if s != nil && s.Identify != nil && d.Received().Headers.String(longshore.HeaderID) == "" {
			if id := s.Identify(d); id != "" {
				return id + suffix
			}
		}
		return longshore.Identity(d)
	}
}

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
