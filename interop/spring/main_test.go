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

// patience is for a busy machine; the program gives up by itself a little earlier.
const patience = 5 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// needJava ends a test that is `make spring`'s.
func needJava(t *testing.T) {
	t.Helper()
	if os.Getenv(classPath) == "" {
		t.Skip("not run here: needs Spring, use `make spring`")
	}
}

// program runs in a mode with arguments name, value, name, value…
type program struct {
	t   *testing.T
	cmd *exec.Cmd
	out bytes.Buffer
	log bytes.Buffer
}

// start needs wait to follow.
func start(t *testing.T, mode string, args ...any) *program {
	t.Helper()
	needJava(t)
	ctx, stop := context.WithTimeout(context.Background(), patience)
	t.Cleanup(stop)
	line := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", os.Getenv(classPath), "interop.Main", mode}
	for i := 0; i < len(args); i += 2 {
		line = append(line, fmt.Sprintf("%v=%v", args[i], args[i+1]))
	}
	p := &program{t: t, cmd: exec.CommandContext(ctx, "java", line...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// noted is what a listener of Spring got.
type noted struct {
	Listener string
	Payload  typed
	Headers  map[string]typed
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

// wait returns what its listeners printed.
func (p *program) wait() []noted {
	p.t.Helper()
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("%s: %v\n%s\n%s", p.cmd.Args[6], err, p.out.String(), p.log.String())
	}
	var all []noted
	lines := bufio.NewScanner(&p.out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var n noted
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			p.t.Fatalf("%q: %v", lines.Text(), err)
		}
		all = append(all, n)
	}
	return all
}

// java runs it to its end.
func java(t *testing.T, mode string, args ...any) []noted {
	t.Helper()
	return start(t, mode, args...).wait()
}
