// Package hops counts how often a message was moved to a dead-letter destination or put back
// from one, so that what goes round comes to an end. Everything that moves messages by
// itself asks it: the container, the replay of dead letters.
//
//	if err := hops.Check(d.Headers, hops.Limit, "MaxHops"); err != nil {
//		return err                         // it went round: it stays where it is
//	}
//	err := hops.Cycle(routes)              // finds the circle before anything moves
//
// In reading order: hops.go counts the moves of one message, cycle.go finds circles of a
// configuration.
package hops
