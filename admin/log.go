package admin

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
)

// deed is what an operator did. Empty fields are left out.
type deed struct {
	verb, text, reason string
	from, to           string
	until              time.Time
	facts              []zap.Field // of one record or partition
	limits             bool        // of this instance's throttle
}

// journal records what operators do.
type journal struct {
	instance string
	hub      *hub // its viewers and those that come later see the event
	log      *zap.Logger
}

// event adds an event of an operator; name is the container, "" for the whole instance.
func (j journal) event(name, text, reason, by string) {
	j.hub.add(Event{Time: time.Now(), Instance: j.instance, Container: name, Kind: "operator", Text: text, Reason: reason, By: by})
}

// note makes an event and a log line of what an operator did.
func (j journal) note(r *http.Request, c *container.ListenerContainer, d deed) {
	d.reason = clip(d.reason)
	j.event(c.Name(), d.text, d.reason, who(r.Context()))
	st := c.Stats()
	fields := []zap.Field{zap.String("container", st.Name), zap.String("source", st.Source), zap.String("transport", st.Transport),
		zap.String("by", who(r.Context())), zap.String("remote", remote(r))}
	if d.from != "" {
		fields = append(fields, zap.String("from", d.from))
	}
	if d.to != "" {
		fields = append(fields, zap.String("to", d.to))
	}
	if !d.until.IsZero() {
		fields = append(fields, zap.Time("until", d.until))
	}
	if d.reason != "" {
		fields = append(fields, zap.String("reason", d.reason))
	}
	if d.limits { // as a fleet's
		j.log.Info("throttle changed", append(fields, zap.String("scope", "instance"))...)
		return
	}
	fields = append(fields, zap.String("verb", d.verb), zap.String("text", d.text))
	j.log.Info("changed by operator", append(fields, d.facts...)...)
}

// remote is the host of the caller.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// limitsText is what a throttle lets through.
func limitsText(l throttle.Limits) string {
	var parts []string
	if l.Permits >= 0 {
		parts = append(parts, fmt.Sprintf("permits %d", l.Permits))
	}
	if l.Rate >= 0 {
		parts = append(parts, fmt.Sprintf("rate %g", l.Rate))
	}
	if l.Burst > 0 {
		parts = append(parts, fmt.Sprintf("burst %d", l.Burst))
	}
	if len(parts) == 0 {
		return "no limit"
	}
	return strings.Join(parts, ", ")
}

// recordFacts are the facts of a record that a caller changed.
func recordFacts(h container.Held) []zap.Field {
	return []zap.Field{zap.String("message_id", clip(h.MessageID)), zap.String("key", h.Key), zap.Int("attempt", h.Attempt)}
}

func span(lo, hi int) string { return fmt.Sprintf("%d..%d", lo, hi) }
