package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/transport/amqp"
)

// The variables that turn this test binary into a consumer: a process that can
// be killed, built from the public API alone.
const (
	childURL     = "LONGSHORE_FAULTS_CHILD_URL"
	childQueue   = "LONGSHORE_FAULTS_CHILD_QUEUE"
	childLedger  = "LONGSHORE_FAULTS_CHILD_LEDGER"
	childWork    = "LONGSHORE_FAULTS_CHILD_WORK" // duration, or "block" = until the context ends
	childWorkers = "LONGSHORE_FAULTS_CHILD_WORKERS"
	childDrain   = "LONGSHORE_FAULTS_CHILD_DRAIN"
)

func TestMain(m *testing.M) {
	if os.Getenv(childURL) != "" {
		if err := childMain(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(soakChildKind) != "" {
		if err := soakChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	runTests(m)
}

func childMain() error {
	l, err := oracle.OpenFile(os.Getenv(childLedger))
	if err != nil {
		return err
	}
	workers, err := strconv.Atoi(os.Getenv(childWorkers))
	if err != nil {
		return err
	}
	drain, err := time.ParseDuration(os.Getenv(childDrain))
	if err != nil {
		return err
	}
	var work time.Duration
	if w := os.Getenv(childWork); w != "block" {
		if work, err = time.ParseDuration(w); err != nil {
			return err
		}
	}
	source := amqp.New(os.Getenv(childURL), amqp.Config{}).Queue(os.Getenv(childQueue), amqp.QueueConfig{})
	handler := func(ctx context.Context, d *longshore.Delivery) error {
		end := l.Begin(string(d.Body), string(d.Key))
		if os.Getenv(childWork) == "block" {
			<-ctx.Done()
			end(false)
			return ctx.Err()
		}
		<-time.After(work)
		end(true)
		return nil
	}
	c, err := container.New(source, longshore.HandlerFunc(handler), container.Config{
		Workers: container.Workers{Min: workers, Max: workers}, Order: container.ByKey, DrainTimeout: drain, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	lifecycle.Main(c)
	return nil
}

type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	ledger *oracle.Ledger // only to note that it was killed
}

type childConfig struct {
	url, queue, ledger, work string
	workers                  int
	drain                    time.Duration
}

func startChild(t *testing.T, cfg childConfig) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := oracle.OpenFile(cfg.ledger)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childURL+"="+cfg.url, childQueue+"="+cfg.queue, childLedger+"="+cfg.ledger, childWork+"="+cfg.work,
		childWorkers+"="+strconv.Itoa(cfg.workers), childDrain+"="+cfg.drain.String())
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, ledger: l}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // ended already in a test that went well
		_ = l.Close()
	})
	return c
}

// kill ends the process as a crash does.
func (c *child) kill() {
	c.t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	_ = c.cmd.Wait() // "signal: killed" is what was wanted
	c.ledger.Killed(c.cmd.Process.Pid)
}

// terminate sends SIGTERM and returns the exit code.
func (c *child) terminate() int {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	return c.exitCode()
}

func (c *child) exitCode() int {
	c.t.Helper()
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return c.cmd.ProcessState.ExitCode()
}

func ledgerFile(t *testing.T) string { return filepath.Join(t.TempDir(), "ledger") }

func readLedger(t *testing.T, path string) *oracle.Ledger {
	t.Helper()
	l, err := oracle.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
