package interop_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// classPath has the class path of the program in jvm, which scripts/spring builds.
const classPath = "LONGSHORE_SPRING"

// commandPath has the path of the command, which scripts/spring builds too.
const commandPath = "LONGSHORE_SPRING_COMMAND"

// patience bounds each step, so that what hangs fails by its name, also on a busy
// machine; the program gives up by itself a little earlier.
const patience = 3 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// needJava ends a test that is `make spring`'s.
func needJava(t *testing.T) {
	t.Helper()
	if os.Getenv(classPath) == "" {
		t.Skip("not run here: needs Spring, use `make spring`")
	}
}

// bounded is for one step of a test.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("given up after %v", patience))
	t.Cleanup(stop)
	return ctx
}

// noted is what a listener of Spring got.
type noted struct {
	Listener string
	Payload  typed
	Headers  map[string]typed
	Tenant   *string // the header of this name, as a parameter of the listener
}

// typed is a value with its Java class.
type typed struct {
	Class string
	Value any
}

func (v typed) String() string {
	text, ok := v.Value.(string)
	if !ok {
		b, err := json.Marshal(v.Value)
		if err != nil {
			return err.Error()
		}
		text = string(b)
	}
	return strings.TrimPrefix(v.Class, "java.lang.") + " " + text
}

// run is a program's output; one that does not end is ended.
func run(t *testing.T, name string, args ...string) *bytes.Buffer {
	t.Helper()
	ctx := bounded(t)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x")
	cmd.WaitDelay = time.Second
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v, %v\n%s\n%s", args, err, context.Cause(ctx), out.String(), log.String())
	}
	return &out
}

// command runs longshore.
func command(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, os.Getenv(commandPath), args...).String()
}

// java runs the program in a mode, with arguments name, value, name, value…, and returns
// what its listeners printed.
func java(t *testing.T, mode string, args ...any) []noted {
	t.Helper()
	needJava(t)
	line := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", os.Getenv(classPath), "interop.Main", mode}
	for i := 0; i < len(args); i += 2 {
		line = append(line, fmt.Sprintf("%v=%v", args[i], args[i+1]))
	}
	var all []noted
	lines := bufio.NewScanner(run(t, "java", line...))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var n noted
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		all = append(all, n)
	}
	return all
}
