package admin

import "github.com/longshore-go/longshore/container"

// Level is how much a container needs a person.
type Level string

// The levels.
const (
	LevelOK      Level = "ok"
	LevelNotice  Level = "notice"  // something is unusual, often on purpose: a pause, a limit
	LevelProblem Level = "problem" // it does not get better by itself
)

// levelOf is how much a container needs a person, by what limits it.
func levelOf(st *container.Stats) Level {
	switch {
	case !st.Live:
		return LevelProblem
	case st.Stuck > 0:
		return LevelProblem
	}
	switch st.Bottleneck.By {
	case container.ByHold, container.ByBroker, container.ByParking, container.ByDeadLetter, container.ByBlocked, container.ByAside, container.ByAlarm,
		container.ByStuck, container.ByReleases, container.BySlow, container.ByFailures:
		return LevelProblem
	case container.ByUnused, container.ByHotKey, container.ByMax, container.ByKnee, container.ByWindow:
		return LevelNotice
	case container.ByPermits, container.ByRate:
		return LevelNotice
	case container.ByState:
		return LevelNotice
	}
	if st.State != container.StateRunning {
		return LevelNotice
	}
	return LevelOK
}
