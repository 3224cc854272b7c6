package faults

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/tools/faultindex"
)

// runTests runs the tests of this package. With the id of a requirement (doc.go),
// -run means the tests that name it, wherever they are: those of other packages
// run first, in processes of their own.
func runTests(m *testing.M) {
	// Most of these tests wait most of their time, some for a broker that one test at a time
	// may break; -parallel on the command line wins.
	_ = flag.Set("test.parallel", "8")
	flag.Parse()
	wanted := flag.Lookup("test.run").Value.String()
	if regexp.MustCompile(`^\^?F-[A-Z](\d\d?)?(\b|$)`).MatchString(wanted) {
		elsewhere, err := selectRequirement(strings.TrimLeft(strings.TrimRight(wanted, "$)"), "^("))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for folder, pattern := range elsewhere {
			if err := runElsewhere(folder, pattern); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\nFAIL\n", folder, err)
				os.Exit(1)
			}
		}
	}
	brokertest.Main(m)
}

// selectRequirement sets -run to this package's tests of the requirements and returns
// the patterns of the other packages.
func selectRequirement(words string) (map[string]string, error) {
	x, err := faultindex.Read("..")
	if err != nil {
		return nil, err
	}
	selected, err := x.Select(words)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(selected, func(r faultindex.Requirement) bool { return len(x.Tests(r.ID)) == 0 && !r.Unbuilt }); i >= 0 {
		return nil, fmt.Errorf("%s has no test", selected[i].ID)
	}
	patterns := x.ByPackage(selected)
	here := patterns["./faults"]
	if here == "" {
		here = "^$"
	}
	delete(patterns, "./faults")
	return patterns, flag.Set("test.run", here)
}

func runElsewhere(folder, pattern string) error {
	args := []string{"test", "-count=1", "-run", pattern}
	if testing.Verbose() {
		args = append(args, "-v")
	}
	cmd := exec.Command("go", append(args, folder)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "..", os.Stdout, os.Stderr
	return cmd.Run()
}
