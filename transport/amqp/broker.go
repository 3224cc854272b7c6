package amqp

import (
	"math/rand/v2"
	"sync"

	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// Broker is a RabbitMQ node or cluster with two shared connections, one to
// consume and one to publish. All methods are safe for concurrent use. It needs
// no closing: a connection ends with its last consumer or publisher.
type Broker struct {
	set     settings     // addresses, login and limits
	consume *conn.Shared // the connection of all consumers
	publish *conn.Shared // one of its own, because a broker in alarm stops reading from publishers and would stop acknowledgements with them

	mu        sync.Mutex                    // guards what follows
	listeners map[*notify.Notifier]struct{} // of open consumers, which may have to publish
	locks     map[string]bool               // that consumers of this process hold, see Queue.Locked
}

// New describes a broker; it does no I/O. The URL is
//
//	amqp[s]://[user[:password]@]host[:port][,host[:port]…][/vhost][?parameter=value…]
//
// No path and "/" mean the virtual host "/"; "/shop" means "shop", "/%2Fshop"
// means "/shop". A wrong URL or configuration is reported by the source's Check
// and Open and by [Broker.Publisher].
func New(url string, cfg Config) *Broker {
	b := &Broker{set: newSettings(url, cfg), listeners: map[*notify.Notifier]struct{}{}, locks: map[string]bool{}}
	b.consume = conn.NewShared(b.set.login, "consume", b.shuffled(), nil)
	b.publish = conn.NewShared(b.set.login, "publish", b.shuffled(), b.announce)
	return b
}

// shuffled spreads the connections of many processes over the nodes of a cluster.
func (b *Broker) shuffled() []conn.Node {
	nodes := append([]conn.Node(nil), b.set.nodes...)
	rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

// String names the broker without credentials.
func (b *Broker) String() string { return "rabbitmq at " + b.address() }

// GoString is String: a Broker holds secrets that no format may show.
func (b *Broker) GoString() string { return b.String() }

// address names all nodes, without user and password, for errors.
func (b *Broker) address() string {
	switch len(b.set.nodes) {
	case 0:
		return ""
	case 1:
		return b.set.nodes[0].String()
	}
	s := b.set.nodes[0].String()
	for _, n := range b.set.nodes[1:] {
		s += "," + n.String()
	}
	return s
}

// Queue is a source that consumes from the named queue.
func (b *Broker) Queue(name string, cfg QueueConfig) *Queue {
	return &Queue{b: b, queues: []string{name}, cfg: cfg}
}

// Queues is one source of several queues with the same configuration: a queue
// is bound to one core of the broker, so more throughput needs more queues. The
// window is shared out among them. Everything a message says of its origin
// names its own queue.
func (b *Broker) Queues(cfg QueueConfig, names ...string) *Queue {
	return &Queue{b: b, queues: append([]string(nil), names...), cfg: cfg}
}

// announce passes an event of the publishing connection to every open consumer: it may
// have to publish a retry or a dead letter.
func (b *Broker) announce(e transport.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range b.listeners {
		n.Event(e)
	}
}

// listen lets a notifier hear of alarms, which concern everything on the broker's connections.
func (b *Broker) listen(n *notify.Notifier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners[n] = struct{}{}
}

// unlisten ends that.
func (b *Broker) unlisten(n *notify.Notifier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners, n)
}
