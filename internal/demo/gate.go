package demo

import (
	"sync"
	"time"
)

// gate is a number of permits that can be changed while it is used. It satisfies
// container.Gate.
type gate struct {
	mu       sync.Mutex
	limit    int // negative = none
	held     int
	watchers map[int]func()
	next     int
}

func newGate() *gate { return &gate{limit: -1, watchers: map[int]func(){}} }

// TryAcquire takes a permit if there is one.
func (g *gate) TryAcquire(time.Time) (ok bool, again time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limit >= 0 && g.held >= g.limit {
		return false, time.Time{}
	}
	g.held++
	return true, time.Time{}
}

// Release gives a permit back.
func (g *gate) Release() {
	g.mu.Lock()
	g.held--
	free := g.limit < 0 || g.held < g.limit
	g.mu.Unlock()
	if free {
		g.tell()
	}
}

// Limits is the number of permits; there is no rate.
func (g *gate) Limits() (limit int, rate float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit, -1
}

// Watch calls changed when a permit may be free.
func (g *gate) Watch(changed func()) (stop func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := g.next
	g.next++
	g.watchers[id] = changed
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.watchers, id)
	}
}

// set changes the number of permits; negative is no limit. Who holds one keeps it.
func (g *gate) set(limit int) {
	g.mu.Lock()
	g.limit = limit
	g.mu.Unlock()
	g.tell()
}

func (g *gate) tell() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, changed := range g.watchers {
		changed() // does not block
	}
}
