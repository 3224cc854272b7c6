// Package clock is the system's time as a longshore.Clock.
//
//	c := clock.Or(cfg.Clock) // the one given, else the system's
package clock
