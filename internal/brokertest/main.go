package brokertest

import (
	"flag"
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

// Presence is the TestMain of the packages under zz_realbrokers: without the
// variable none of the package's tests runs, and go test writes so behind its
// name, which is all that it shows of a package that passes.
func Presence(m *testing.M, variable string) {
	if os.Getenv(variable) == "" && !required() {
		flag.Parse()
		_ = flag.Set("test.run", "^$") // the testing package has registered it
		sayNotRun(variable)
	}
	goleak.VerifyTestMain(m)
}

func sayNotRun(variable string) {
	_, _ = os.Stderr.WriteString("not run here: tests that need " + variable + " (set it, or use `make test`)\n")
}
