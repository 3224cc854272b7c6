// Command sabotage breaks the code on purpose, one line at a time, in a copy of the
// tree, and expects the fault suite to turn red each time. It prints which
// requirement saw it. A fault that nobody sees is a hole in the tests.
//
//	go run ./tools/sabotage                  all ten
//	go run ./tools/sabotage -only "Flush"    those with this in their name
//	go run ./tools/sabotage -commit          the last commit instead of the files as they are
//
// A test counts only if it passes on the unbroken copy.
package main
