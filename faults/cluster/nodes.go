//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// node is one of three brokers, in a network namespace of its own.
type node struct {
	name  string // of scripts/brokers
	ip    string
	space string // its namespace; the other end of its link, on the bridge, has the same name
	ctl   string // RabbitMQ's own tool for it
}

// nodes are a cluster that may be broken. Methods return when it is done.
type nodes struct {
	all    []*node
	tracer bool   // there is strace, which slows a disk down
	old    string // the version that Kafka nodes have until they are upgraded; "": they have the newest
	mu     sync.Mutex
	broken []func() error // what heals what is broken, the latest last
}

const script = "scripts/brokers"

// findNodes finds the three brokers that scripts/brokers run has started.
func findNodes(ctx context.Context, on string) (*nodes, error) {
	_, err := exec.LookPath("strace")
	n := &nodes{tracer: err == nil}
	if on == "kafka" {
		n.old = os.Getenv(versionVariable)
	}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("%s-n%d", on, i)
		env, err := environment(ctx, name)
		if err != nil {
			return nil, err
		}
		ip := env["KAFKA_ADDRS"]
		if on == "rabbitmq" {
			_, ip, _ = strings.Cut(env["AMQP_URL"], "@")
		}
		ip, _, _ = strings.Cut(ip, ":")
		n.all = append(n.all, &node{name: name, ip: ip, space: env["NODE_SPACE"], ctl: env["RABBITMQCTL"]})
	}
	return n, nil
}

// environment reads what scripts/brokers exports for a broker.
func environment(ctx context.Context, name string) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, script, "env", name).Output() //nolint:gosec // our own script
	if err != nil {
		return nil, fmt.Errorf("%s env %s: %w", script, name, err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if k, v, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "="); ok {
			env[k] = strings.Trim(v, "'")
		}
	}
	return env, nil
}

// undo registers what heals the fault that begins now.
func (n *nodes) undo(f func() error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken = append(n.broken, f)
}

// heal ends all faults.
func (n *nodes) heal() (failed error) {
	n.mu.Lock()
	broken := n.broken
	n.broken = nil
	n.mu.Unlock()
	for i := len(broken) - 1; i >= 0; i-- {
		failed = errors.Join(failed, broken[i]())
	}
	return failed
}

// kill ends brokers as a crash does.
func (n *nodes) kill(ctx context.Context, which ...*node) error {
	names := []string{"kill"}
	for _, one := range which {
		names = append(names, one.name)
	}
	n.undo(func() error { return n.start(context.WithoutCancel(ctx), which...) })
	return command(ctx, script, names...)
}

// start brings brokers back. All at once: one without the others may have no majority to
// become ready with.
func (n *nodes) start(ctx context.Context, which ...*node) error {
	names := []string{"start"}
	for _, one := range which {
		names = append(names, one.name)
	}
	return command(ctx, script, names...)
}

// restart stops a broker in good order, and starts it.
func (n *nodes) restart(ctx context.Context, one *node) error {
	return command(ctx, script, "restart", one.name)
}

// freeze stops a broker's process without ending it.
func (n *nodes) freeze(ctx context.Context, one *node) error {
	n.undo(func() error { return command(context.WithoutCancel(ctx), script, "thaw", one.name) })
	return command(ctx, script, "freeze", one.name)
}

// isolate takes a broker's link down: neither the others nor clients reach it, and nobody is
// told.
func (n *nodes) isolate(ctx context.Context, one *node) error {
	n.undo(func() error { return command(context.WithoutCancel(ctx), "ip", "link", "set", one.space, "up") })
	return command(ctx, "ip", "link", "set", one.space, "down")
}

// cut drops what from sends to another broker. Packets the other way arrive, and their
// answers do not.
func (n *nodes) cut(ctx context.Context, from, to *node) error {
	route := func(ctx context.Context, verb string) error {
		return command(ctx, "ip", "-n", from.space, "route", verb, "blackhole", to.ip+"/32")
	}
	n.undo(func() error { return route(context.WithoutCancel(ctx), "del") })
	return route(ctx, "add")
}

// command runs a program and shows what it said if it failed.
func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput() //nolint:gosec // named in this package
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	if os.Getenv("LONGSHORE_JEPSEN_LOUD") != "" {
		fmt.Printf("%s", out)
	}
	return nil
}
