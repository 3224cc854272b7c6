package brokertest

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main is the TestMain of a package with tests on real brokers: it runs the
// tests, names the variables that are not set, and fails on goroutines that
// outlive them.
func Main(m *testing.M, variables ...string) {
	for _, variable := range variables {
		if os.Getenv(variable) == "" {
			sayNotRun(variable)
		}
	}
	goleak.VerifyTestMain(m)
}

func sayNotRun(variable string) {
	_, _ = os.Stderr.WriteString("not run here: tests that need " + variable + " (set it, or use `make test`)\n")
}
