package dlq

import (
	"cmp"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/hops"
)

// Restore is the message as it was before it failed, to be sent again: without what
// was written about the failure, with its identity, its key and everything else. It
// counts the replay.
func Restore(d *longshore.Delivery) *longshore.Message {
	m := *d.Received()
	headers := make(longshore.Headers, 0, len(m.Headers)+2)
	for _, h := range m.Headers {
		if !isFailure(h.Name) && h.Name != hops.Header {
			headers = append(headers, h)
		}
	}
	// Should the replay die between sending and settling, the next one sends it once
	// more: with one id in both they can be told for what they are.
	id := longshore.Identity(d)
	if !headers.Has(longshore.HeaderID) { // written by an earlier version: the id of what died is beside it
		id = cmp.Or(d.Received().Headers.String(headerID), id)
	}
	if id != "" && id != m.ID && !headers.Has(longshore.HeaderID) {
		headers = append(headers, longshore.Header{Name: longshore.HeaderID, Value: id})
	}
	headers = append(headers, longshore.Header{Name: hops.Header, Value: hops.Of(m.Headers) + 1}, longshore.Header{Name: headerReplays, Value: int64(FactsOf(d).Replays + 1)})
	m.Headers = headers
	return &m
}

// isFailure tells whether a header is about a failure, or a count that would make
// the message fail early the next time.
func isFailure(name string) bool {
	switch name {
	case headerAttempt, headerReason, headerError, headerAttempts, headerAt, headerSource, headerBy, headerReplays, headerID,
		springOriginalExchange, springOriginalKey, springMessage, springStack,
		"x-death", "x-delivery-count", "x-acquired-count",
		"springDeserializerExceptionKey", "springDeserializerExceptionValue":
		return true
	}
	for _, prefix := range []string{"x-first-death-", "x-last-death-", "kafka_dlt-", "kafka_original-", "kafka_exception-", "kafka_key-exception-", "retry_topic-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
