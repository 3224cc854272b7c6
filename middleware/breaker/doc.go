// Package breaker stops a container's intake while something that its handler needs
// is down, and brings it back when it works again.
//
//	ledger, err := breaker.New(breaker.Config{Name: "ledger", Probe: ledger.Ping})
//	c, err := container.New(orders, pay, container.Config{
//		Middleware: []longshore.Middleware{ledger},
//	})
//
// When too many calls of the handler fail, the breaker opens. While it is open
//
//   - the container cancels its consumer, so that the broker and its monitoring see
//     that nobody consumes; what was not started goes back to the broker, or waits
//     where the broker would count that. A consumer whose role or partitions others
//     would take stays and is paused;
//   - nothing is counted as an attempt and nothing is dead-lettered for it: what
//     failed while or because it opened is released, as is every trial that fails;
//   - after OpenFor, doubled each time up to OpenMax, Probe is asked; without one the
//     container consumes again and Trials messages are let through while all others
//     wait. A message whose trial failed steps back once for another at the next.
//
// When that works the breaker closes, and more and more handlers run at once over
// the time of Ramp: a dependency that has just come back gets no herd.
//
// A handler that knows that it cannot work at all, not this message alone, returns
// [Unavailable] around its error: that opens the breaker at once.
//
// The breaker counts, over a window that moves, what handlers return: an error
// without a verdict and longshore.Retry are failures; nil, longshore.Reject and
// longshore.Discard are not, since the message was at fault; longshore.Release and
// what a drain or a lost lease cut short is left out. With manual settling only what
// handlers return is seen.
//
// One breaker may be shared by containers that need the same thing: they are held
// together.
package breaker
