// Command throttle shows three instances of a service in front of a legacy downstream
// that breaks when more than six calls run at once. Their control topic tells all of
// them at once what is allowed: a total of six to share, nothing for a moment while
// the downstream is restarted, then more after it was replaced. No broker is needed.
//
//	go run ./examples/throttle
package main
