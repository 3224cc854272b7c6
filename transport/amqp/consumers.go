package amqp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// AMQP does not say who else consumes from a queue; the management API does, where
// Config.Management names it.

const (
	// listedFor is how long one answer is used: the API's own numbers are five seconds old.
	listedFor = 5 * time.Second
	// mostListed is of how many consumers the connections are looked up.
	mostListed = 50
)

// listedConsumers keeps the last list of a source's consumers and what was learnt of their
// connections, whose names RabbitMQ does not use twice.
type listedConsumers struct {
	mu      sync.Mutex                  // guards the others: several viewers may ask at once
	last    transport.ConsumerList      // shown again while it is young, so that viewers cost the broker little
	clients map[string]clientProperties // by the connection's name
}

// queueConsumers is what the management API has about the consumers of a queue.
type queueConsumers struct {
	Details []struct {
		Tag      string         `json:"consumer_tag"`
		Channel  channelDetails `json:"channel_details"`
		Active   *bool          `json:"active"` // nil: the broker does not say
		Prefetch int            `json:"prefetch_count"`
	} `json:"consumer_details"`
	Stats struct {
		Deliver *int64 `json:"deliver_get"` // nil before the first one
	} `json:"message_stats"`
}

// channelDetails is where a consumer is. RabbitMQ writes an empty list in place of an empty
// object until it has seen the channel, for up to five seconds.
type channelDetails struct {
	Connection string // its name, which leads to the client
	Host       string // address of the client
}

// UnmarshalJSON takes the empty list too.
func (d *channelDetails) UnmarshalJSON(text []byte) error {
	var seen struct {
		Connection string `json:"connection_name"`
		Host       string `json:"peer_host"`
	}
	if string(text) == "[]" {
		return nil
	}
	err := json.Unmarshal(text, &seen)
	d.Connection, d.Host = seen.Connection, seen.Host
	return err
}

// clientProperties is what a client says of itself.
type clientProperties struct {
	Program string `json:"longshore_program"` // binary and version of a Longshore client
	Name    string `json:"connection_name"`
	Product string `json:"product"`
	Version string `json:"version"`
}

// product is the program of a Longshore client, else the library, with its version.
func (p clientProperties) product() string {
	return cmp.Or(p.Program, strings.TrimSpace(p.Product+" "+p.Version))
}

// Consumers lists who consumes from the queues, from the management API.
func (s *Queue) Consumers(ctx context.Context) (transport.ConsumerList, error) {
	switch {
	case s.cast != nil:
		return transport.ConsumerList{}, s.unlisted("each reader of a broadcast has a queue of its own", "")
	case s.b.set.Management == "":
		return transport.ConsumerList{}, s.unlisted("AMQP does not list them", "set the management URL (amqp.Config.Management)")
	}
	s.listed.mu.Lock()
	defer s.listed.mu.Unlock()
	if time.Since(s.listed.last.At) < listedFor {
		return s.listed.last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	list, known := transport.ConsumerList{At: time.Now()}, map[string]clientProperties{}
	for _, name := range s.queues {
		var q queueConsumers
		found, err := s.b.set.askManagement(ctx, &q, url.Values{"columns": {"consumer_details,message_stats.deliver_get"}}, "queues", s.b.set.addr.VHost, name)
		if err != nil {
			return transport.ConsumerList{}, err
		}
		if !found {
			continue
		}
		if q.Stats.Deliver != nil {
			list.Delivered += *q.Stats.Deliver
		}
		list.Total += len(q.Details)
		for _, d := range q.Details[:max(0, min(len(q.Details), mostListed-len(list.Consumers)))] {
			about := s.listed.about(ctx, &s.b.set, d.Channel.Connection)
			known[d.Channel.Connection] = about
			list.Consumers = append(list.Consumers, transport.ListedConsumer{ID: d.Tag, Host: d.Channel.Host, Client: about.Name, Product: about.product(),
				Prefetch: d.Prefetch, Standby: d.Active != nil && !*d.Active, Partitions: -1})
		}
	}
	s.listed.last, s.listed.clients = list, known
	return list, nil
}

// unlisted is the error where RabbitMQ cannot list the consumers.
func (s *Queue) unlisted(why, hint string) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: "list the consumers of " + s.title(), Source: s.name(), Err: errors.New(why), Hint: hint}
}

// about is what is known of a connection's client; nothing where the user may not see it.
func (l *listedConsumers) about(ctx context.Context, set *settings, connection string) clientProperties {
	if p, ok := l.clients[connection]; ok || connection == "" {
		return p
	}
	var c struct {
		Properties clientProperties `json:"client_properties"`
	}
	if _, err := set.askManagement(ctx, &c, nil, "connections", connection); err != nil {
		return clientProperties{}
	}
	return c.Properties
}
