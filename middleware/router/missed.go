package router

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

const (
	missedEvery = time.Minute
	// missedTypes are distinguished; all others share a line, so that a producer of random
	// types fills neither the log nor the memory.
	missedTypes = 100
	otherTypes  = "(others)"
)

// missed logs what no route takes.
type missed struct {
	log    *zap.Logger
	policy Policy

	mu    sync.Mutex
	types map[string]*miss
}

type miss struct {
	told  time.Time
	since int // without a line
}

func (m *missed) note(typ string, d *longshore.Delivery, now time.Time) {
	m.mu.Lock()
	e, group := m.types[typ], typ
	if e == nil {
		if len(m.types) >= missedTypes {
			group = otherTypes
			e = m.types[group]
		}
		if e == nil {
			e = &miss{}
			m.types[group] = e
		}
	}
	e.since++
	count, due := e.since, e.told.IsZero() || now.Sub(e.told) >= missedEvery
	if due {
		e.told, e.since = now, 0
	}
	m.mu.Unlock()
	if due {
		m.log.Warn("no route", zap.String("type", cut(typ)), zap.String("topic", cut(d.Origin.Topic)), zap.String("routing_key", cut(d.Origin.RoutingKey)),
			zap.String("message_id", cut(d.Received().ID)), zap.String("source", d.Origin.Source()), zap.Stringer("policy", m.policy), logs.Repeated(count))
	}
}

const longest = 64

func cut(s string) string {
	if len(s) > longest {
		return s[:longest]
	}
	return s
}
