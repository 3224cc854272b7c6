// Package zz_realbrokers says at the end of `go test ./...` which real brokers
// were absent, so that the suites which need them did not run.
//
// go test shows of a package that passes nothing but its name and whether it had
// tests to run. So there is one package per broker, named after the broker and
// its variable, last in the list: "[no tests to run]" behind the name means that
// the variable is not set and the tests on that broker, in whatever package, were
// not run. With the variable set the package checks that the broker answers.
package zz_realbrokers
