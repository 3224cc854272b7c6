// Package extend is third-party code on top of Longshore, in a module of its
// own: a transport (queue), a middleware (tenants) and a scaling policy (perbacklog).
// They use the exported API only; the test runs all three in one container.
//
//	cd examples/extend && go test ./...
package extend
