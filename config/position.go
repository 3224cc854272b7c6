package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/urls"
)

// Place is a queue or a topic of a container, for who looks at it or publishes to it
// instead of running the container.
type Place struct {
	Source transport.Source
	// URL is the source's or its broker's; it may hold a password. User and Password
	// are those alongside it.
	URL      string
	User     string
	Password transport.Secret
}

// Queue is what a container consumes.
func (c *Config) Queue(name string, o urls.Options) (Place, error) {
	s, err := c.find(name)
	if err != nil {
		return Place{}, err
	}
	if s.Source.URL != "" {
		o.Memory, o.Password = c.sources.memory, s.Source.Password.Secret
		src, err := o.Source(s.Source.URL)
		return Place{Source: src, URL: s.Source.URL, Password: o.Password}, err
	}
	seen := *s.Source
	seen.BrowseCounts = seen.BrowseCounts || o.BrowseCounts
	src, err := c.sources.source(&seen)
	return c.on(s.Source.Broker, src), err
}

// DeadLetters is where a container's dead letters are: dead_letter.to. It is longshore.CodeConfig
// where the file does not say that.
func (c *Config) DeadLetters(name string, o urls.Options) (Place, error) {
	s, err := c.find(name)
	if err != nil {
		return Place{}, err
	}
	if s.DeadLetter == nil || s.DeadLetter.To == "" {
		return Place{}, c.noPlace(name, "has no dead_letter.to")
	}
	to, at := s.DeadLetter.To, s.elsewhere()
	if at == "" && s.Source.URL != "" {
		o.Memory, o.Password, o.DeadLetters = c.sources.memory, s.Source.Password.Secret, true
		address, ok := beside(s.Source.URL, to)
		if !ok {
			return Place{}, c.noPlace(name, "has an exchange as dead_letter.to")
		}
		src, err := o.Source(address)
		return Place{Source: src, URL: address, Password: o.Password}, err
	}
	if at == "" {
		at = s.Source.Broker
	}
	if c.sources.brokers[at].sqs != nil && at == s.Source.Broker {
		to = sqs.Beside(s.Source.Queue, to)
	}
	src := c.sources.brokers[at].letters(to, o)
	if src == nil {
		return Place{}, c.noPlace(name, "has an exchange as dead_letter.to")
	}
	return c.on(at, src), nil
}

// OwnDeadLetters reports whether the file says what a container does with its dead letters
// itself: dead_letter.to, wherever that is, or a policy that leaves nothing to the broker.
func (c *Config) OwnDeadLetters(name string) bool {
	s, err := c.find(name)
	if err != nil || s.DeadLetter == nil {
		return false
	}
	return s.DeadLetter.To != "" || s.DeadLetter.Policy == "keep" || s.DeadLetter.Policy == "discard"
}

// noPlace is the error about a container whose messages no command can reach, and why.
func (c *Config) noPlace(name, why string) error {
	return &longshore.Error{Code: longshore.CodeConfig, Op: "find the dead letters of container " + fmt.Sprintf("%q", name), Source: name,
		Err: errors.New("it " + why + " in " + c.loader.name), Hint: "give the URL of the queue or topic in which they are"}
}

// on is a place on a broker of the file.
func (c *Config) on(name string, src transport.Source) Place {
	b := c.loader.file.Brokers[name]
	return Place{Source: src, URL: b.URL, User: b.User, Password: b.Password.Secret}
}

// letters is a place of dead letters on a broker; nil for an exchange, which leads to any
// number of queues.
func (b broker) letters(to string, o urls.Options) transport.Source {
	switch {
	case b.rabbit != nil:
		if strings.Contains(to, "/") {
			return nil
		}
		return b.rabbit.Queue(queueOf(to), amqp.QueueConfig{BrowseCounts: o.BrowseCounts})
	case b.kafka != nil:
		topic, _, _ := strings.Cut(to, "/")                                                                                     // a partition of it
		return b.kafka.Group(urls.DeadLetterGroup(topic), []string{topic}, kafka.GroupConfig{SessionTimeout: 10 * time.Second}) // as urls does
	case b.sqs != nil:
		return b.sqs.Queue(to, sqs.QueueConfig{BrowseCounts: o.BrowseCounts})
	}
	return b.named(to)
}

// queueOf undoes what amqp.To does to a name.
func queueOf(to string) string {
	return strings.NewReplacer("%2F", "/", "%2f", "/", "%25", "%").Replace(to)
}

// beside is the URL of another queue or topic on the broker of a source.
func beside(source, to string) (address string, ok bool) {
	scheme, rest, _ := strings.Cut(source, "://")
	place, query, _ := strings.Cut(rest, "?")
	values, _ := url.ParseQuery(query) // the source was read before
	for _, of := range []string{"queue", "queues", "exchange", "kind", "keys", "declare", "prefetch", "group", "broadcast", "start", "protocol", "window", "partitions", "visibility", "envelope"} {
		values.Del(of)
	}
	switch kindOf(source) {
	case onRabbit:
		if strings.Contains(to, "/") {
			return "", false
		}
		values.Set("queue", queueOf(to))
	case onKafka:
		to, _, _ = strings.Cut(to, "/")
		at := strings.LastIndexByte(place, '@') + 1
		hosts, _, _ := strings.Cut(place[at:], "/")
		place = place[:at] + hosts + "/" + url.PathEscape(to)
	case onSQS:
		if queue, err := url.PathUnescape(strings.TrimSuffix(place, "/")); err == nil { // as urls reads it
			to = sqs.Beside(queue, to)
		}
		place = url.PathEscape(to)
	default:
		place = url.PathEscape(to)
	}
	if address = scheme + "://" + place; len(values) > 0 {
		address += "?" + values.Encode()
	}
	return address, true
}
