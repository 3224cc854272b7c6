//go:build race

package container

import "github.com/longshore-go/longshore/container/internal/dispatch"

// mostChecked bounds what is walked over after every change.
const mostChecked = 100

// checkInvariants looks at every invariant of the Scheduler after each change, in whatever
// is built with the race detector: all tests, models and soaks are.
func checkInvariants(sched *dispatch.Scheduler[item]) {
	if sched.Total().N > mostChecked {
		return
	}
	if err := sched.Check(); err != nil {
		panic(err) //nolint:forbidigo // a defect of ours, in a build for tests
	}
}
