package container

import (
	"cmp"
	"crypto/rand"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/hops"
)

// The headers of a dead letter. Each is replaced and never appended, so that a
// message does not grow when it fails again and again.
const (
	HeaderAttempt      = "longshore-attempt"       // on the retry path: the attempt this delivery is
	HeaderDeadReason   = "longshore-dead-reason"   // code of the error
	HeaderDeadError    = "longshore-dead-error"    // its text, at most 512 bytes
	HeaderDeadAttempts = "longshore-dead-attempts" // how often a handler saw it
	HeaderDeadAt       = "longshore-dead-at"       // when it was given up
	HeaderDeadSource   = "longshore-dead-source"   // where it came from
	HeaderDeadBy       = "longshore-dead-by"       // container and host
	HeaderDeadReplays  = "longshore-dead-replays"  // how often it was put back
	HeaderDeadID       = "longshore-dead-id"       // its identity where it came from; read, and no longer written: it is longshore-id now
)

const maxErrorText = 512

// transient is AMQP's delivery mode of what a broker may forget.
const transient = 1

// diagnostics is how much a dead letter says about its end.
type diagnostics uint8

const (
	allDiagnostics   diagnostics = iota
	briefDiagnostics             // the code and the attempts, which tools select by
	noDiagnostics                // as it came: what came in under a limit goes out under it
)

// copyIdentity is what all copies of a message carry that are made here: its own
// identity, or where it has none, as on RabbitMQ, one that is made up once. A move that is
// tried again may make a second copy.
func (it *item) copyIdentity() string {
	if it.copyID == "" {
		h := it.d.Received().Headers
		it.copyID = cmp.Or(h.String(longshore.HeaderID), h.String(HeaderDeadID), longshore.Identity(it.d), rand.Text())
	}
	return it.copyID
}

// message is what was received, with its identity and the reasons in its headers.
func (l *deadLetters) message(d *longshore.Delivery, id string, reason error, said diagnostics) *longshore.Message {
	m := *d.Received()
	headers := make(longshore.Headers, 0, len(m.Headers)+8)
	for _, h := range m.Headers {
		switch h.Name {
		case HeaderAttempt, HeaderDeadReason, HeaderDeadError, HeaderDeadAttempts, HeaderDeadAt, HeaderDeadSource, HeaderDeadBy, HeaderDeadID, HeaderDeadHops:
		default:
			headers = append(headers, h)
		}
	}
	if said <= briefDiagnostics || m.Headers.Has(HeaderDeadHops) {
		headers = append(headers, longshore.Header{Name: HeaderDeadHops, Value: hops.Of(m.Headers) + 1})
	}
	if said <= briefDiagnostics {
		headers = append(headers,
			longshore.Header{Name: HeaderDeadReason, Value: string(longshore.CodeOf(reason))},
			longshore.Header{Name: HeaderDeadAttempts, Value: int64(d.Attempt)})
		if id != m.ID && !m.Headers.Has(longshore.HeaderID) {
			headers = append(headers, longshore.Header{Name: longshore.HeaderID, Value: id})
		}
	}
	if said == allDiagnostics {
		host, _ := os.Hostname()
		text := ""
		if reason != nil {
			text = reason.Error()
		}
		headers = append(headers,
			longshore.Header{Name: HeaderDeadError, Value: cutText(text, maxErrorText)},
			longshore.Header{Name: HeaderDeadAt, Value: l.s.clock.Now().UTC().Format(time.RFC3339Nano)},
			longshore.Header{Name: HeaderDeadSource, Value: cutText(l.s.about.Name, 255)},
			longshore.Header{Name: HeaderDeadBy, Value: cutText(l.s.name+"@"+host, 255)})
	}
	m.Headers = headers
	m.Expiration = 0 // it must not expire where it waits for people
	if m.DeliveryMode == transient {
		m.DeliveryMode = 0 // nor go with a restart of the broker: zero is the mode that lasts
	}
	return &m
}

// cutText makes the text valid UTF-8 and cuts it at a rune boundary.
func cutText(s string, limit int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
