package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	// commandTimeout covers a node's start on a busy machine.
	commandTimeout = 5 * time.Minute
	// lockTimeout covers the tests of other packages that want the same node.
	lockTimeout = 15 * time.Minute
)

// condition is how the node's last user left it.
type condition bool

const (
	inOrder    condition = false
	leftBroken condition = true
)

// findScript returns the path of scripts/brokers, above the working directory.
func findScript() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding scripts/brokers: %w", err)
	}
	for {
		path := filepath.Join(dir, "scripts", "brokers")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no scripts/brokers above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

// output runs a command to its end. Its context is not the test's: cleanups use
// it too.
func output(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // a grandchild may hold the pipe
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// mustOutput fails t with the command's output when it fails.
func mustOutput(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := output(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// brokers runs scripts/brokers COMMAND on it.
func (p *process) brokers(command string) string {
	p.t.Helper()
	return mustOutput(p.t, p.script, command, p.name)
}

// environment parses its exports.
func (p *process) environment() map[string]string {
	p.t.Helper()
	env := make(map[string]string)
	for line := range strings.Lines(p.brokers("env")) {
		name, v, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if ok {
			env[name] = strings.Trim(v, "'")
		}
	}
	return env
}
