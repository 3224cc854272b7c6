// Package gateway is the admin API of many instances as one: what the page of longshore
// console talks to. Everything that the instances stream is handed on, once for all viewers,
// with the name of the instance; a request about one container is forwarded to its instance
// with the operator's token of that instance. Who may ask is decided by the admin server in
// front of it.
//
//	g := gateway.New(targets, fleet.Config{})
//	a, err := admin.New(admin.Config{Addr: addr, Around: g.Around, Operators: people})
//	g.Run(ctx)
//
// In reading order: gateway.go (routes and forwarding), hub.go (streams), merge.go (the answers
// of all instances as one).
package gateway
