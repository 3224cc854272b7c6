// Package throttle limits how much a container works on at once, or starts per
// second, and lets both be changed while it runs: from code, over HTTP (package
// admin), and for every instance of a service at once ([Fleet]).
//
//	limit := throttle.NewPermits(5) // or NewRate(200); both: limit.SetRate(200)
//	perTenant := throttle.PerKey(1, func(d *longshore.Delivery) string { return d.Headers.String("tenant") })
//	c, err := container.New(orders, pay, container.Config{
//		Throttle:   limit,
//		Middleware: []longshore.Middleware{perTenant},
//	})
//	limit.SetPermits(20) // now, from anywhere; 0 holds everything; limit.Unlimit() opens
//
// # What a limit does
//
//   - A [Limiter] is asked before a worker takes a delivery. What has to wait
//     occupies no worker and costs no attempt, and the container takes less from the
//     broker instead of sitting on messages whose lease runs.
//   - 0 permits or a rate of 0 holds everything. Negative numbers and what is not a
//     number mean 0: a slip in arithmetic must not open the gate. Only
//     [Limiter.Unlimit], [Limiter.UnlimitPermits] and [Limiter.UnlimitRate] do.
//   - Fewer permits than are in use interrupt nothing: what runs goes on, and nothing
//     starts until enough of it has ended. More permits are used at once.
//   - One limiter may be the Throttle of several containers and be used from other
//     code by [Limiter.Acquire]: together they stay under the limit.
//   - [PerKey] is a middleware: it waits inside the worker, through Delivery.Wait, so
//     that the wait is neither busy time nor latency.
//
// All functions and methods may be called from any goroutine.
package throttle
