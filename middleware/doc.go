// Package middleware has the light ones, one file each: what a handler is wrapped in
// and needs no dependency. Those with state or a dependency of their own are
// sub-packages: throttle, breaker, mutex.
//
//	container.New(source, handler, container.Config{Middleware: []longshore.Middleware{
//		middleware.Log(logger),                // outermost
//		middleware.Timeout(30 * time.Second),
//		middleware.Decode(middleware.DecodeConfig{}),
//	}})
//
// The first in the list is the outermost; container.Validate reports orders that are
// known to be wrong. All of them are safe for concurrent use and work in a container
// with a batch handler, except where their comment says otherwise.
package middleware
