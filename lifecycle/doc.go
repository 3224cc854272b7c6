// Package lifecycle starts and stops the parts of a service in order: database
// pools first, then publishers, relays and the admin server, containers last;
// and in reverse at the end, so that what a running handler needs is there until
// the last one has returned.
//
// A service of containers only:
//
//	func main() {
//		c, err := container.New(orders, pay, container.Config{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		lifecycle.Main(c) // until Ctrl-C or SIGTERM, then drains and reports
//	}
//
// [Main] exits with 0 after a clean drain, 1 if starting failed or the drain left
// something behind, 130 or 143 after a second signal, which ends the waiting for
// handlers and says what it abandons. Signals within a second of each other count as one:
// supervisors signal a process and its group. A signal during the start ends the start and drains
// what runs already, with the same codes. [Run] knows no signals and prints nothing: it
// ends with a context, [Manager] leaves the waiting to the caller, [Hosted] serves a
// framework with a lifecycle of its own, and package lifecyclefx wires all of it into an fx
// application.
package lifecycle
