package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
)

// The variables that turn this test binary into the consumer of one leg of the soak.
const (
	soakChildKind   = "LONGSHORE_SOAK_CHILD" // amqp, kafka or sqs
	soakChildAddr   = "LONGSHORE_SOAK_CHILD_ADDR"
	soakChildName   = "LONGSHORE_SOAK_CHILD_NAME"
	soakChildLedger = "LONGSHORE_SOAK_CHILD_LEDGER"
	soakChildTables = "LONGSHORE_SOAK_CHILD_TABLES" // prefix of its tables, see soakEffects
)

// soakSource reaches a broker, through the leg's proxy in a child.
func soakSource(kind, addr, name string) (transport.Source, error) {
	switch kind {
	case "amqp":
		return amqp.New(addr, amqp.Config{Heartbeat: 2 * time.Second}).Queue(name, amqp.QueueConfig{}), nil
	case "kafka":
		dial := kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) { // one node
			return new(net.Dialer).DialContext(ctx, network, addr)
		})
		return kafka.New([]string{addr}, kafka.Config{Options: []kgo.Opt{dial, kgo.HeartbeatInterval(300 * time.Millisecond)}}).
			Group(name, []string{name}, kafka.GroupConfig{SessionTimeout: 4 * time.Second}), nil
	case "sqs":
		return sqs.New(sqs.Config{Region: "us-east-1", Endpoint: addr, Credentials: sqsKeys()}).Queue(name, sqs.QueueConfig{}), nil
	}
	return nil, fmt.Errorf("no leg is called %q", kind)
}

// soakChild consumes until it is told to stop, or killed.
func soakChild() error {
	go func() { // it does not outlive the test, however that ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	l, err := oracle.OpenFile(os.Getenv(soakChildLedger))
	if err != nil {
		return err
	}
	src, err := soakSource(os.Getenv(soakChildKind), os.Getenv(soakChildAddr), os.Getenv(soakChildName))
	if err != nil {
		return err
	}
	effects, once, err := openSoakEffects(os.Getenv(soakChildTables))
	if err != nil {
		return err
	}
	defer effects.close()
	handler := func(ctx context.Context, d *longshore.Delivery) error {
		end := l.Begin(string(d.Body), string(d.Key))
		if n, err := strconv.Atoi(string(d.Body)); err == nil && n%37 == 0 && d.Attempt == 1 {
			end(false)
			return longshore.Retry(errors.New("not at the first time"), 30*time.Millisecond)
		}
		if err := effects.add(ctx, d); err != nil {
			end(false)
			return err
		}
		select {
		case <-time.After(time.Duration(2+len(d.Key)%5) * time.Millisecond):
		case <-ctx.Done():
			end(false)
			return ctx.Err()
		}
		end(d.Owned() || effects != nil) // the transaction tells what became of an effect
		return nil
	}
	c, err := container.New(src, longshore.HandlerFunc(handler), container.Config{Workers: container.Workers{Min: 8, Max: 8}, Order: container.ByKey, WaitForBroker: true,
		Reopen: quickly, DrainTimeout: 5 * time.Second, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}, Logger: soakLogger(), Middleware: once})
	if err != nil {
		return err
	}
	lifecycle.Main(c)
	return nil
}

// soakProcess is a child and what was done to it.
type soakProcess struct {
	t                        *testing.T
	kind, addr, name, ledger string
	tables                   string // "": effects are not counted
	note                     *oracle.Ledger
	cmd                      *exec.Cmd
}

func (p *soakProcess) start() {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Error(err)
		return
	}
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(os.Environ(), soakChildKind+"="+p.kind, soakChildAddr+"="+p.addr, soakChildName+"="+p.name, soakChildLedger+"="+p.ledger, soakChildTables+"="+p.tables)
	p.cmd.Stderr = os.Stderr
	if _, err := p.cmd.StdinPipe(); err != nil { // its end is ours
		p.t.Error(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Errorf("%s: %v", p.kind, err)
		p.cmd = nil
	}
}

func (p *soakProcess) signal(s syscall.Signal) {
	p.t.Helper()
	if p.cmd == nil {
		return // it could not be started: the test has failed
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("%s: %v: %v", p.kind, s, err)
	}
}

// kill ends it as a crash does, stop as a deployment. Both wait.
func (p *soakProcess) kill() {
	p.signal(syscall.SIGKILL)
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Wait() // "signal: killed" is what was wanted
	p.note.Killed(p.cmd.Process.Pid)
	p.cmd = nil
}

func (p *soakProcess) stop() {
	p.signal(syscall.SIGTERM)
	if p.cmd == nil {
		return
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Logf("%s: a stop ended with %v", p.kind, err)
	}
	p.note.Killed(p.cmd.Process.Pid) // a handler that was abandoned never ends
	p.cmd = nil
}

func (p *soakProcess) end() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill() // the test has failed already
		_ = p.cmd.Wait()
	}
}

// plainAddr is what a URL dials.
func plainAddr(rawURL string) string {
	_, host, _ := strings.Cut(rawURL, "://")
	host, _, _ = strings.Cut(host, "/")
	if i := strings.LastIndex(host, "@"); i >= 0 {
		host = host[i+1:]
	}
	return host
}

// soakLogger shows what a child says, where that is wanted.
func soakLogger() *zap.Logger {
	if os.Getenv("LONGSHORE_SOAK_LOG") == "" {
		return zap.NewNop()
	}
	return nil // warnings and errors, on stderr
}
