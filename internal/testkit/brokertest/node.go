package brokertest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// defaultFaultNode is the RabbitMQ that only tests with faults use.
const defaultFaultNode = "rabbitmq-faults"

// Node is a RabbitMQ node that a test may break. It belongs to the test until the
// test ends, then it is put in order again. Methods fail the test when the node
// does not obey; they return when the node has done what they say.
type Node struct {
	// URL of a fresh vhost on the node.
	URL string

	process
	ctl        string
	broker     string // AMQP URL of the default vhost
	management string // URL
}

// FaultNode returns the second RabbitMQ of this checkout (scripts/brokers start
// rabbitmq-faults; LONGSHORE_FAULT_NODE names another), started if need be. One
// test at a time has it, over all packages and processes. It can be had where
// scripts/brokers can start a RabbitMQ; elsewhere the test is not run.
func FaultNode(t testing.TB) *Node {
	t.Helper()
	name := os.Getenv("LONGSHORE_FAULT_NODE")
	if name == "" {
		name = defaultFaultNode
	}
	n := takeNodes(t, name, name)[0]
	n.URL = n.freshVhost()
	t.Cleanup(n.repair)
	return n
}

// Cluster returns two clustered RabbitMQ nodes under the conditions of
// [FaultNode]. Their URLs name the same fresh vhost. A queue lives on the node
// whose connection declared it; with one of two nodes gone there is no majority,
// so a quorum queue waits until it is back.
func Cluster(t testing.TB) (first, second *Node) {
	t.Helper()
	nodes := takeNodes(t, "rabbitmq-cluster", "rabbitmq-a", "rabbitmq-b")
	first, second = nodes[0], nodes[1]
	first.URL = first.freshVhost()
	vhost := first.URL[strings.LastIndex(first.URL, "/")+1:]
	second.URL = second.broker + vhost
	t.Cleanup(second.repair)
	t.Cleanup(first.repair)
	return first, second
}

// takeNodes locks and starts nodes (start is what scripts/brokers calls them
// together).
func takeNodes(t testing.TB, start string, names ...string) []*Node {
	t.Helper()
	value(t, RabbitMQ)
	var nodes []*Node
	for _, p := range take(t, start, names...) {
		n := &Node{process: p}
		env := n.environment()
		n.ctl, n.broker, n.management = env["RABBITMQCTL"], env[RabbitMQ], env["AMQP_MANAGEMENT"]
		nodes = append(nodes, n)
	}
	return nodes
}

// freshVhost makes the test's vhost. A repair registered after it runs before the
// vhost is removed, which needs a healthy node.
func (n *Node) freshVhost() string {
	n.t.Helper()
	m, err := managementOf(n.broker, n.management)
	if err != nil {
		n.t.Fatal(err)
	}
	return m.freshVhost(n.t, n.broker)
}

// Ctl runs rabbitmqctl on the node and returns what it printed.
func (n *Node) Ctl(args ...string) string {
	n.t.Helper()
	return mustOutput(n.t, n.ctl, append([]string{"-q"}, args...)...)
}

// Eval evaluates an Erlang expression in the node.
func (n *Node) Eval(expression string) string {
	n.t.Helper()
	return n.Ctl("eval", expression)
}

// StopApp stops the broker inside the node: every connection ends, the port refuses.
func (n *Node) StopApp() {
	n.t.Helper()
	n.undo["app"] = n.StartApp
	n.Ctl("stop_app")
}

// StartApp ends StopApp.
func (n *Node) StartApp() {
	n.t.Helper()
	n.Ctl("start_app")
	delete(n.undo, "app")
}

// CloseAllConnections closes them from the broker's side, code 320.
func (n *Node) CloseAllConnections() {
	n.t.Helper()
	n.Ctl("close_all_connections", "--global", "closed by a test") // else only those of vhost "/"
}

// MemoryAlarm blocks (and unblocks) every connection that publishes.
func (n *Node) MemoryAlarm(on bool) {
	n.t.Helper()
	if on {
		n.undo["alarm"] = func() { n.MemoryAlarm(false) }
		n.Ctl("set_vm_memory_high_watermark", "0.0000001")
		return
	}
	n.Ctl("set_vm_memory_high_watermark", "0.4")
	delete(n.undo, "alarm")
}

// ConsumerTimeout sets the delivery acknowledgement timeout, checked four times
// per d, for channels opened from now on; 0 sets the broker's defaults.
func (n *Node) ConsumerTimeout(d time.Duration) {
	n.t.Helper()
	timeout, tick := 30*time.Minute, time.Minute
	if d > 0 {
		timeout, tick = d, d/4
		n.undo["timeout"] = func() { n.ConsumerTimeout(0) }
	}
	n.Eval(fmt.Sprintf("application:set_env(rabbit, consumer_timeout, %d), application:set_env(rabbit, channel_tick_interval, %d).",
		timeout.Milliseconds(), max(tick.Milliseconds(), 1)))
	if d <= 0 {
		delete(n.undo, "timeout")
	}
}

// ChangePassword sets guest's password until the test ends.
func (n *Node) ChangePassword(password string) {
	n.t.Helper()
	n.undo["password"] = func() { n.Ctl("change_password", "guest", "guest") }
	n.Ctl("change_password", "guest", password)
}
