// Command docscheck compiles the Go code of the documentation: README.md,
// CONTRIBUTING.md and everything under docs/.
//
//	go run ./scripts/docscheck
//
// A ```go block that starts with a package clause is a whole program. One marked
// ```go snippet is a part of one: declarations or statements, for which the imports
// are found by package name, unused variables are allowed, and what the text takes
// for granted is declared in a comment somewhere before it in the same file:
//
//	<!-- docscheck
//	var orders transport.Source
//	-->
//
// A block that shall not be compiled says why: ```go ignore REASON. A ```go block
// that is none of these is a mistake, so that no code goes unchecked unnoticed.
package main
