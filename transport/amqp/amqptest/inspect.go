package amqptest

import (
	"sort"
	"time"
)

// ConnInfo describes a connection.
type ConnInfo struct {
	ID         uint64
	Name       string // "client address -> server address", as RabbitMQ names it
	ClientName string // the client's connection_name
	User       string
	VHost      string
	Properties Table // the client's
	Blocked    bool
	Secret     string // of its last connection.update-secret
	Channels   []ChannelInfo
}

// ChannelInfo describes a channel.
type ChannelInfo struct {
	Number         uint16
	Confirm        bool
	Prefetch       int // of the next consumer
	GlobalPrefetch int
	Unacked        int
	Consumers      []ConsumerInfo
}

// ConsumerInfo describes a subscription.
type ConsumerInfo struct {
	Tag       string
	Queue     string
	NoAck     bool
	Exclusive bool
	Active    bool // false = waiting behind a single active consumer
	Priority  int
	Prefetch  int
	Unacked   int
}

// QueueInfo describes a queue.
type QueueInfo struct {
	VHost, Name                    string
	Type                           string // "classic" or "quorum"
	Durable, Exclusive, AutoDelete bool
	Arguments                      Table
	Ready, Unacked                 int
	Consumers                      []ConsumerInfo
	Bindings                       []BindingInfo
}

// BindingInfo describes a binding of a queue.
type BindingInfo struct {
	Exchange, Key string
	Arguments     Table
}

// Message is a message waiting in a queue.
type Message struct {
	Exchange, Key string
	Headers       Table
	Body          []byte
	Redelivered   bool
	Returns       int       // x-delivery-count of a quorum queue
	Expires       time.Time // zero = never
}

func (c *conn) info() ConnInfo {
	i := ConnInfo{
		ID: c.id, Name: c.raw.RemoteAddr().String() + " -> " + c.raw.LocalAddr().String(),
		ClientName: c.clientName, Properties: c.properties, Blocked: c.blocked, Secret: c.secret,
	}
	if c.user != nil {
		i.User = c.user.Name
	}
	if c.vhost != nil {
		i.VHost = c.vhost.name
	}
	for _, ch := range c.channels {
		i.Channels = append(i.Channels, ch.info())
	}
	sort.Slice(i.Channels, func(a, b int) bool { return i.Channels[a].Number < i.Channels[b].Number })
	return i
}

func (ch *channel) info() ChannelInfo {
	i := ChannelInfo{Number: ch.n, Confirm: ch.confirm, Prefetch: ch.prefetch,
		GlobalPrefetch: ch.globalPrefetch, Unacked: ch.unacked.live}
	for _, c := range ch.consumers {
		i.Consumers = append(i.Consumers, c.info())
	}
	sort.Slice(i.Consumers, func(a, b int) bool { return i.Consumers[a].Tag < i.Consumers[b].Tag })
	return i
}

func (c *consumer) info() ConsumerInfo {
	return ConsumerInfo{Tag: c.tag, Queue: c.queue.name, NoAck: c.noAck, Exclusive: c.exclusive,
		Active: !c.queue.singleActive || c.queue.active == c, Priority: int(c.priority),
		Prefetch: c.prefetch, Unacked: c.unacked}
}

func (q *queue) info() QueueInfo {
	i := QueueInfo{VHost: q.vh.name, Name: q.name, Type: "classic", Durable: q.durable, Exclusive: q.owner != nil,
		AutoDelete: q.autoDelete, Arguments: q.args, Ready: q.count, Unacked: q.unacked}
	if q.quorum {
		i.Type = "quorum"
	}
	for _, c := range q.consumers {
		i.Consumers = append(i.Consumers, c.info())
	}
	for _, b := range q.bindings {
		i.Bindings = append(i.Bindings, BindingInfo{b.source.name, b.key, b.args})
	}
	return i
}

// Connections lists the open connections, oldest first.
func (s *Server) Connections() []ConnInfo {
	s.begin()
	defer s.end()
	var out []ConnInfo
	for c := range s.conns {
		if c.state == connOpen {
			out = append(out, c.info())
		}
	}
	sort.Slice(out, func(a, b int) bool { return out[a].ID < out[b].ID })
	return out
}

// Queue describes one queue; ok is false when there is none.
func (s *Server) Queue(vhost, name string) (info QueueInfo, ok bool) {
	ok = s.withQueue(vhost, name, func(q *queue) { info = q.info() })
	return info, ok
}

// Queues lists the queues of a virtual host by name.
func (s *Server) Queues(vhost string) []QueueInfo {
	s.begin()
	defer s.end()
	var out []QueueInfo
	if vh := s.vhosts[vhost]; vh != nil {
		for _, q := range vh.queues {
			out = append(out, q.info())
		}
	}
	sort.Slice(out, func(a, b int) bool { return out[a].Name < out[b].Name })
	return out
}

// Messages shows the ready messages of a queue in the order they would go out,
// without taking them.
func (s *Server) Messages(vhost, name string) []Message {
	var out []Message
	s.withQueue(vhost, name, func(q *queue) {
		q.lists(func(l *entryList) bool {
			for e := l.front; e != nil; e = e.next {
				out = append(out, Message{Exchange: e.msg.exchange, Key: e.msg.key, Headers: e.msg.headers,
					Body: e.msg.body, Redelivered: e.redelivered, Returns: e.returns, Expires: e.expires})
			}
			return true
		})
	})
	return out
}
