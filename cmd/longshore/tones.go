package main

import (
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/doctor"
	"github.com/longshore-go/longshore/internal/table"
)

// containerTone colours the state of a container.
func containerTone(state string) table.Tone {
	switch container.State(state) {
	case container.StateRunning:
		return table.Good
	case container.StateNew, container.StateStarting, container.StatePaused, container.StateDraining, container.StateStopped:
		return table.Note
	case container.StateRecovering:
		return table.Bad
	}
	return table.Plain
}

// recordTone colours the state of a record that a container holds.
func recordTone(state string) table.Tone {
	switch container.HeldState(state) {
	case container.HeldRunning:
		return table.Good
	case container.HeldStuck:
		return table.Bad
	case container.HeldMoving:
		return table.Warn
	case container.HeldParked, container.HeldBehind, container.HeldReady:
	}
	return table.Plain
}

// levelTone colours what doctor says about a setting.
func levelTone(level string) table.Tone {
	switch doctor.Level(level) {
	case doctor.OK:
		return table.Good
	case doctor.Warn:
		return table.Warn
	case doctor.Bad:
		return table.Bad
	case doctor.Unknown:
		return table.Note
	}
	return table.Plain
}
