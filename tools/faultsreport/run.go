package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/longshore-go/longshore/tools/faultindex"
)

// event is a line of go test -json.
type event struct {
	Action  string
	Test    string
	Output  string
	Elapsed float64
}

const (
	passed = "pass"
	failed = "FAIL"
	notRun = "not run"
)

// outcome is what one run says about a test.
type outcome struct {
	Result  string  // passed, failed or notRun
	Seconds float64 `json:",omitempty"`
	Skipped int     `json:",omitempty"` // parts that could not run here
	Parts   int     `json:",omitempty"`
	Absent  int     `json:",omitempty"` // of those: for want of a broker
}

// absence is how internal/testkit/brokertest begins to say that a broker is not there.
const absence = "not run here: "

// runPackage runs tests of a package and returns what became of each. A failing test is
// an outcome, not an error; what cannot be built is an error.
func runPackage(root, folder string, tests []string, o options) (map[string]outcome, error) {
	args := []string{"test", "-json", "-count=1", "-timeout", o.timeout.String(), "-run", faultindex.Pattern(tests)}
	if o.race {
		args = append(args, "-race")
	}
	if o.short {
		args = append(args, "-short")
	}
	fmt.Printf("=== %s\n", folder)
	cmd := exec.Command("go", append(args, folder)...) //nolint:noctx // ends by its own -timeout
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	results, tail, readErr := read(out)
	err = cmd.Wait()
	if readErr != nil {
		return nil, readErr
	}
	if err != nil && len(results) == 0 {
		return nil, fmt.Errorf("%s: %w\n%s", folder, err, tail)
	}
	if err != nil && !anyFailed(results) { // a panic, a leak, the end of its time
		fmt.Print(tail)
	}
	return complete(results, tests, err), nil
}

// complete has an outcome for each test, so that no former one is taken for one of this
// run: those behind a panic, or the end of the package's time, had no turn. Where the
// package failed and no test did, all have.
func complete(results map[string]outcome, tests []string, err error) map[string]outcome {
	if err != nil && !anyFailed(results) {
		for name, r := range results {
			r.Result = failed
			results[name] = r
		}
	}
	for _, name := range tests {
		if _, ran := results[name]; !ran {
			results[name] = outcome{Result: notRun}
		}
	}
	return results
}

// read follows the stream, shows the output of tests that fail, and keeps the last
// lines of the package's own.
func read(in io.Reader) (results map[string]outcome, tail string, err error) {
	results = map[string]outcome{}
	output := map[string][]string{}
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var e event
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			continue // what a build prints
		}
		top, _, isPart := strings.Cut(e.Test, "/")
		r := results[top]
		switch e.Action {
		case "output":
			output[top] = append(output[top], e.Output)
			r.Absent += strings.Count(e.Output, absence)
		case "run":
			if e.Test != "" && r.Result == "" {
				r.Result = failed // until it ends
			}
		case "skip":
			r.Skipped++
			r.Parts++
			if !isPart {
				r.Result = notRun
			}
		case "pass", "fail":
			r.Parts++
			if !isPart {
				r.Result, r.Seconds = map[string]string{"pass": passed, "fail": failed}[e.Action], e.Elapsed
			}
		}
		if top == "" {
			continue
		}
		results[top] = r
		if e.Action == "fail" && !isPart {
			fmt.Printf("--- FAIL: %s\n%s", top, strings.Join(last(output[top], 60), ""))
		}
	}
	skippedIsNotRun(results)
	return results, strings.Join(last(output[""], 60), ""), sc.Err()
}

// skippedIsNotRun: where all parts of a test were skipped, so was it.
func skippedIsNotRun(results map[string]outcome) {
	for name, r := range results {
		if r.Result == passed && r.Parts > 1 && r.Skipped == r.Parts-1 {
			r.Result = notRun
			results[name] = r
		}
	}
}

func last(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }

func anyFailed(results map[string]outcome) bool {
	for _, r := range results {
		if r.Result == failed {
			return true
		}
	}
	return false
}
