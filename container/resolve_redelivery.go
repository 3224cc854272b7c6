package container

import (
	"fmt"
	"math"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/backoff"
	"github.com/longshore-go/longshore/internal/hops"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

func (s *settings) redelivery(p *problems, src transport.Source, cfg Config, w Workers) {
	caps := src.Capabilities()
	r := cfg.Redelivery
	p.number("Redelivery.MaxAttempts", r.MaxAttempts, 0, math.MaxInt32)
	if s.attempts = r.MaxAttempts; s.attempts == 0 {
		s.attempts = defaultAttempts
	}
	p.number("Redelivery.Parked", r.Parked, 0, 10_000_000)
	if s.parked = r.Parked; s.parked == 0 {
		s.parked = parkedFactor * s.window(w.Max)
	}
	s.retry = spacing(p, "Redelivery.Backoff", r.Backoff, redeliverySpacing())
	s.retrySet = r.Backoff.Max > 0 || r.Backoff.Every > 0
	s.reopen = spacing(p, "Reopen", cfg.Reopen, reopenSpacing())

	if s.order = cfg.Order; s.order == nil {
		s.order = Unordered
		if caps.Keyed {
			s.order = ByKey
		}
	}
	f, ok := s.order.(OrderFunc)
	s.byFunc, s.byPartition = ok, s.order == Order(ByPartition)
	if ok && f == nil {
		p.Bad("Order", "give it a function", "is an OrderFunc without a function")
	}
	if s.byPartition && !caps.Partitions {
		p.Bad("Order", "use {ByKey} or {Unordered}", "is {ByPartition}, but %s has no partitions", s.name)
	}
	s.ordered = isOrdered(s.order)
	if limit := keepLimit(caps); s.ordered && s.retrySet && limit > 0 && s.retry.Max > limit {
		p.Range("Redelivery.Backoff.Max", s.retry.Max, "at most %v: with an order a retry waits in this process, and the delivery's lease would run out", limit)
	}
	s.deadLetter(p, src, caps)
}

func spacing(p *problems, field string, b, zero Backoff) backoff.Policy {
	if b.Every != 0 {
		return everySpacing(p, field, b)
	}
	for name, v := range map[string]time.Duration{".Initial": b.Initial, ".Max": b.Max} {
		if v < 0 || v > maxTime {
			p.Range(field+name, v, "positive and at most %v, or 0 for the default", maxTime)
		}
	}
	if b.Multiplier != 0 && !(b.Multiplier >= 1 && b.Multiplier <= 1000) {
		p.Range(field+".Multiplier", b.Multiplier, "from 1 to 1000, or 0 for the default, %v", zero.Multiplier)
	}
	if b.Jitter != -1 && !(b.Jitter >= 0 && b.Jitter <= 1) {
		p.Range(field+".Jitter", b.Jitter, "from 0 to 1{?, or -1 for none}")
	}
	switch {
	case b.Initial == 0 && b.Max > 0:
		b.Initial = min(zero.Initial, b.Max)
	case b.Initial == 0:
		b.Initial = zero.Initial
	}
	if b.Max == 0 {
		b.Max = max(zero.Max, b.Initial)
	}
	if b.Initial > b.Max {
		p.Range(field+".Initial", b.Initial, "at most {"+field+".Max}, which is %v", b.Max)
	}
	if b.Multiplier == 0 {
		b.Multiplier = zero.Multiplier
	}
	switch {
	case b.Jitter == 0:
		b.Jitter = zero.Jitter
	case b.Jitter < 0:
		b.Jitter = 0
	}
	return backoff.Policy{Initial: b.Initial, Max: b.Max, Multiplier: b.Multiplier, Jitter: b.Jitter}
}

// everySpacing is a fixed delay.
func everySpacing(p *problems, field string, b Backoff) backoff.Policy {
	if b.Every < 0 || b.Every > maxTime {
		p.Range(field+".Every", b.Every, "positive and at most %v", maxTime)
	}
	if b != (Backoff{Every: b.Every}) {
		p.Conflict(field+".Every", b.Every, "the other fields of {"+field+"}", "it is a fixed delay", "leave them out")
	}
	return backoff.Policy{Initial: b.Every, Max: b.Every, Multiplier: 1}
}

// keepLimit is how long a delivery may wait here before its lease is in danger;
// 0 = no limit.
func keepLimit(caps longshore.Capabilities) time.Duration {
	switch {
	case caps.Lease > 0:
		return caps.Lease / 2
	case caps.MaxLease > 0:
		return caps.MaxLease / 2
	}
	return 0
}

func (s *settings) deadLetter(p *problems, src transport.Source, caps longshore.Capabilities) {
	d := s.dead
	p.number("DeadLetter.MaxHops", d.MaxHops, 0, math.MaxInt32)
	if s.hops = d.MaxHops; s.hops == 0 {
		s.hops = hops.Limit
	}
	if s.ownSource(src) {
		p.Bad("DeadLetter.To", "name another place", "is %q, which is the source itself: a dead letter would come back at once", d.To)
	}
	_, outlet := src.(transport.Outlet)
	switch {
	case d.Policy > DeadLetterDiscard:
		p.Range("DeadLetter.Policy", d.Policy, "{DeadLetterNative}, {DeadLetterKeep} or {DeadLetterDiscard}")
	case d.To != "" && d.Policy != Default:
		p.Bad("DeadLetter", "leave one of the two out", "has both {DeadLetter.To} and {DeadLetter.Policy}")
	case d.To == "" && d.Via != nil:
		p.Add(problem.Bad("DeadLetter.Via", "set {DeadLetter.To}, or leave {DeadLetter.Via} out", "is set without {DeadLetter.To}").OfKind(problem.Missing))
	case d.To != "" && d.Via == nil && !outlet:
		p.Add(problem.Bad("DeadLetter.Via", "give a publisher", "is nil, and %s cannot publish", s.name).OfKind(problem.Missing))
	case d.To == "" && d.Policy == Default && caps.HeadOfLineBlocking:
		p.Add(problem.Bad("DeadLetter", "set {DeadLetter.To}, or {DeadLetter.Policy} {Keep} or {Discard}", "is not set, and a failed message that is kept here blocks its partition").OfKind(problem.Missing))
	}
}

// terminal is the policy that applies, once the consumer's capabilities are known.
func (s *settings) terminal(caps longshore.Capabilities) (Policy, error) {
	switch {
	case s.dead.To != "":
		return Default, nil
	case s.dead.Policy == DeadLetterNative && !caps.DeadLetter:
		return 0, &longshore.Error{Code: longshore.CodeUnsupported, Source: s.name,
			Op:   fmt.Sprintf("start container %q", s.name),
			Err:  fmt.Errorf("DeadLetter.Policy is Native, but no dead-letter destination of the broker is known (capability DeadLetter)"),
			Hint: "set DeadLetter.To, or Policy Keep or Discard"}
	case s.dead.Policy != Default:
		return s.deletion.opened(s.dead.Policy, caps), nil
	case caps.HeadOfLineBlocking:
		return 0, &longshore.Error{Code: longshore.CodeUnsupported, Source: s.name,
			Op:   fmt.Sprintf("start container %q", s.name),
			Err:  fmt.Errorf("DeadLetter is not set, and a failed message that is kept stops others (capability HeadOfLineBlocking)"),
			Hint: "set DeadLetter.To, or Policy Keep or Discard"}
	case caps.DeadLetter:
		return DeadLetterNative, nil
	}
	return DeadLetterKeep, nil
}
