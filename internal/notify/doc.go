// Package notify calls a [transport.Observer] in order and outside of every lock. The
// transports share it.
//
//	n := notify.New(o.Observer)
//	c.mu.Lock()
//	n.Lost(ds, cause)                      // returns at once; the observer hears of it soon
//	c.mu.Unlock()
package notify
