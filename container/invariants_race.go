//go:build race

package container

// mostChecked bounds what is walked over after every change.
const mostChecked = 100

// checkInvariants looks at every invariant of the Scheduler after each change, in whatever
// is built with the race detector: all tests, models and soaks are. The caller holds mu.
func (r *dispatcher) checkInvariants() {
	if r.sched.Total().N > mostChecked {
		return
	}
	if err := r.sched.Check(); err != nil {
		panic(err) //nolint:forbidigo // a defect of ours, in a build for tests
	}
}
