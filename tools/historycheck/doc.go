// Command historycheck reads the history of a run (see internal/testkit/history) and says
// which promises it breaks. It knows no broker and nothing of what was tested.
//
//	go run ./tools/historycheck -ordered -effects FOLDER
//
// Exit code 0: none; 1: some, printed one by line; 2: the history cannot be read.
//
// Reading order: main.go, check.go (the rules), faults.go (what each fault cost).
package main
