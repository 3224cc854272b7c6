// Package autoscale decides how many workers a container should have. A policy
// is a pure function of its own state and a sample that the container takes
// every 500 ms: it reads no clock and starts no goroutine.
//
//	cfg.Autoscale = autoscale.Adaptive{Hold: time.Minute} // the default, with a longer memory
package autoscale
