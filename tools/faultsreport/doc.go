// Command faultsreport runs the tests of the fault suite by requirement and writes
// docs/faults.md: requirement, tests, last result, versions of the brokers.
//
//	go run ./tools/faultsreport                 all, and write the page
//	go run ./tools/faultsreport -run F-C01      one requirement; a prefix, or several with commas
//	go run ./tools/faultsreport -list           what belongs to what, nothing is run
//
// Tests on real brokers run where the variables say so (`make faults` starts them).
// Results are kept in .cache/faults: the page shows the last one of each test.
// The exit code is 1 if a test failed, a requirement has none or none of its tests could
// run, or a comment names an id that no test carries.
package main
