// Package recipes has one short program for each thing that people look for. Each file is
// complete by itself and runs as a test on an embedded broker: go test ./examples/recipes.
// README.md lists them, and where the other examples are.
//
//	go test -run TestRetryAndDeadLetter -v ./examples/recipes
package recipes
