package container

import (
	"fmt"
	"math"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/backoff"
	"github.com/longshore-go/longshore/internal/hops"
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
	s.retrySet = r.Backoff.Max > 0
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
		p.addf("Order", "is an OrderFunc without a function")
	}
	if s.byPartition && !caps.Partitions {
		p.addf("Order", "is ByPartition: %s has no partitions; use ByKey or Unordered", s.name)
	}
	s.ordered = isOrdered(s.order)
	if limit := keepLimit(caps); s.ordered && s.retrySet && limit > 0 && s.retry.Max > limit {
		p.addf("Redelivery.Backoff.Max", "is %v: with an order a retry waits here, and the lease allows at most %v", s.retry.Max, limit)
	}
	s.deadLetter(p, src, caps)
}

func spacing(p *problems, field string, b, zero Backoff) backoff.Policy {
	for name, v := range map[string]time.Duration{".Initial": b.Initial, ".Max": b.Max} {
		if v < 0 || v > maxTime {
			p.addf(field+name, "is %v: must be positive and at most %v, or 0 for the default", v, maxTime)
		}
	}
	if b.Multiplier != 0 && !(b.Multiplier >= 1 && b.Multiplier <= 1000) {
		p.addf(field+".Multiplier", "is %v: must be within 1 to 1000, or 0 for %v", b.Multiplier, zero.Multiplier)
	}
	if b.Jitter != -1 && !(b.Jitter >= 0 && b.Jitter <= 1) {
		p.addf(field+".Jitter", "is %v: must be within 0 to 1, or -1 for none", b.Jitter)
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
		p.addf(field+".Initial", "is %v: must be at most %s.Max, which is %v", b.Initial, field, b.Max)
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
		p.addf("DeadLetter.To", "is %q, the source itself: a dead letter would come back at once", d.To)
	}
	_, outlet := src.(transport.Outlet)
	switch {
	case d.Policy > DeadLetterDiscard:
		p.addf("DeadLetter.Policy", "is %d: must be Native, Keep or Discard", d.Policy)
	case d.To != "" && d.Policy != Default:
		p.addf("DeadLetter", "has To and Policy: choose one")
	case d.To == "" && d.Via != nil:
		p.addf("DeadLetter.Via", "is set without To")
	case d.To != "" && d.Via == nil && !outlet:
		p.addf("DeadLetter.Via", "is nil and %s cannot publish: give a publisher", s.name)
	case d.To == "" && d.Policy == Default && caps.HeadOfLineBlocking:
		p.addf("DeadLetter", "is not set: on this source a failed message that is kept stops its partition; set To, or Policy Keep or Discard")
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
			Err:  fmt.Errorf("DeadLetter.Policy is Native, but no dead-letter place of the broker is known (capability DeadLetter)"),
			Hint: "set DeadLetter.To, or Policy Keep or Discard"}
	case s.dead.Policy != Default:
		return s.dead.Policy, nil
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
