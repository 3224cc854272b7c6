package container

import (
	"slices"

	"github.com/longshore-go/longshore"
)

// hooks are the middlewares that want more of the container than to wrap its handler. They are
// found once, when it is made, so that no message pays for the search.
type hooks struct {
	observers []longshore.OutcomeObserver   // want every verdict
	operators []longshore.OperationObserver // want every broker operation
	checks    []longshore.Checker           // check what the source can do
	watchers  []longshore.Watcher           // can hold the intake
	names     []string                      // of the watchers
}

// hooksOf finds what each middleware wants.
func hooksOf(mws []longshore.Middleware) (h hooks) {
	for _, m := range mws {
		if o, ok := m.(longshore.OutcomeObserver); ok {
			h.observers = append(h.observers, o)
		}
		if o, ok := m.(longshore.OperationObserver); ok {
			h.operators = append(h.operators, o)
		}
		if k, ok := m.(longshore.Checker); ok {
			h.checks = append(h.checks, k)
		}
		if x, ok := m.(longshore.Watcher); ok {
			h.watchers, h.names = append(h.watchers, x), append(h.names, nameOf(m))
		}
	}
	return h
}

// doubts says whether a middleware only tries if work may start.
func (h *hooks) doubts() bool {
	return slices.ContainsFunc(h.watchers, func(w longshore.Watcher) bool {
		d, ok := w.(longshore.Doubter)
		return ok && d.Doubts()
	})
}
