// Package admin looks at and steers running containers over HTTP: the API behind
// `longshore ctl`.
//
//	limit := throttle.NewPermits(20)
//	c, err := container.New(orders, pay, container.Config{Throttle: limit})
//	a, err := admin.New(admin.Config{Containers: []*container.ListenerContainer{c}})
//	lifecycle.Main(a, c) // 127.0.0.1:8391; longshore ctl status
//
// # Who may do what
//
// Every change needs the token of an operator, on loopback too. Without operators
// configured one token is made at the start and written to a file that only this user
// can read, where `longshore ctl` on this host finds it ([TokenFile]). What a caller
// without a token may see is decided by its connection, on a mux of one's own too: a
// process of this host sees names and numbers, but no ids, keys or texts; any other peer,
// and a proxy of this host that forwards, only health and metrics. Without an operator's
// token configured, other hosts get no more than that with any token, so probes and
// scrapes work on a pod's address without configuration.
//
// Foreign Host headers, except on health, and cross-site requests of browsers are refused, no GET changes
// anything, and there is no profiling. Each change is an event that says who and why.
//
// The routes are described by GET /api/openapi.json. Errors are JSON: code, message
// and help. /health/live, /health/ready and /metrics need no token.
package admin
