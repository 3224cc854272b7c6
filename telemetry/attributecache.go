package telemetry

import (
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore"
)

// memoMost is how many subscriptions are remembered at once.
const memoMost = 256

// memo keeps what is made once for a subscription. Every reconnect makes a new one,
// so all are forgotten now and then.
type memo[T any] struct {
	m sync.Map // of *longshore.Subscription to *T
	n atomic.Int64
}

func (m *memo[T]) get(sub *longshore.Subscription, build func(*longshore.Subscription) *T) *T {
	if v, ok := m.m.Load(sub); ok {
		if t, ok := v.(*T); ok {
			return t
		}
	}
	if m.n.Add(1) > memoMost {
		m.n.Store(1)
		m.m.Clear()
	}
	t := build(sub)
	if v, ok := m.m.LoadOrStore(sub, t); ok {
		if stored, ok := v.(*T); ok {
			return stored
		}
	}
	return t
}
