//go:build !race

package container

// checkInvariants does nothing: see invariants_race.go.
func (r *dispatcher) checkInvariants() {}
