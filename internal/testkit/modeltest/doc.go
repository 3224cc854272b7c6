// Package modeltest compares a component with a simple model of it: random sequences of
// operations, drawn and shrunk by rapid, each in a bubble of testing/synctest, so that
// its time is virtual and its goroutines are gone at the end.
//
//	modeltest.Check(t, 20, func(t *rapid.T) {
//		t.Repeat(map[string]func(*rapid.T){"": m.check, "ack": m.ack, "stop": m.stop})
//	})
//
// LONGSHORE_MODEL=n runs n sequences (`make model`), -rapid.seed=n repeats what failed.
package modeltest
