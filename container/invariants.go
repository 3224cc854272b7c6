//go:build !race

package container

import "github.com/longshore-go/longshore/container/internal/dispatch"

// checkInvariants does nothing: see invariants_race.go.
func checkInvariants(*dispatch.Scheduler[item]) {}
