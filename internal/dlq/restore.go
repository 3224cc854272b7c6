package dlq

import (
	"slices"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/hops"
)

// Restore is the message as it was before it failed, to be sent again: without what
// was written about the failure, with its identity, its key and everything else. It
// counts the replay.
func Restore(d *longshore.Delivery) *longshore.Message {
	was := d.Received()
	// Should the replay die between sending and settling, the next one sends the message once
	// more, with the identity that Forwarded gives both copies.
	m := longshore.Forwarded(d)
	m.Headers = slices.DeleteFunc(m.Headers, func(h longshore.Header) bool { return isFailure(h.Name) || h.Name == hops.Header })
	if id := was.Headers.String(headerID); id != "" && !was.Headers.Has(longshore.HeaderID) { // written by an earlier version
		m.Headers.Set(longshore.HeaderID, id)
	}
	m.Headers = append(m.Headers, longshore.Header{Name: hops.Header, Value: hops.Of(was.Headers) + 1}, longshore.Header{Name: headerReplays, Value: int64(FactsOf(d).Replays + 1)})
	return m
}

// isFailure reports whether a header says why the message failed. Forwarded has left out what
// counts its failures.
func isFailure(name string) bool {
	switch name {
	case headerReason, headerError, headerAttempts, headerAt, headerSource, headerBy, headerReplays, headerID,
		springOriginalExchange, springOriginalKey, springMessage, springStack,
		"springDeserializerExceptionKey", "springDeserializerExceptionValue":
		return true
	}
	for _, prefix := range []string{"kafka_dlt-", "kafka_original-", "kafka_exception-", "kafka_key-exception-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
