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
// can read, where `longshore ctl` on this host finds it ([TokenFile]). On loopback
// looking needs no token; elsewhere it needs one of an operator or a viewer, and
// without an operator's token configured [New] refuses to serve there at all.
//
// Foreign Host headers and cross-site requests of browsers are refused, no GET changes
// anything, and there is no profiling. Each change is an event that says who and why.
//
// The routes are described by GET /api/openapi.json. Errors are JSON: code, message
// and help. /health/live, /health/ready and /metrics need no token.
package admin
