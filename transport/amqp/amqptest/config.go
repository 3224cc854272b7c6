package amqptest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Flavor is the RabbitMQ version whose behaviour the server shows, where
// versions differ.
type Flavor int

const (
	// V3_10: every return of a quorum queue's message counts towards its delivery
	// limit, and there is none by default. Without one a requeued message goes to
	// the end of its queue. An ack timeout closes the channel with 406. The default.
	V3_10 Flavor = iota
	// V4_0: as V3_10, but the default delivery limit is 20 (-1 = none), x-death of
	// a published message is not counted on, and x-consumer-timeout is obeyed.
	V4_0
	// V4_3: a nack does not count towards the delivery limit (reject and channel
	// close do), x-acquired-count says how often a message was handed out. An ack
	// timeout happens on quorum queues only: the message goes back uncounted, its
	// consumer gets basic.cancel, the channel stays open and a late ack changes
	// nothing. x-consumer-timeout is refused on classic queues.
	V4_3
)

// String is the version the server reports.
func (f Flavor) String() string {
	switch f {
	case V4_0:
		return "4.0.5"
	case V4_3:
		return "4.3.6"
	}
	return "3.10.8"
}

// Config of a server. The zero value is a RabbitMQ 3.10 as it comes out of the
// box: user guest with password guest, virtual host "/".
type Config struct {
	// Addr to listen on; zero = a free port on 127.0.0.1.
	Addr string
	// Flavor is the RabbitMQ version to behave like; zero = V3_10.
	Flavor Flavor
	// VHosts that exist; nil = "/".
	VHosts []string
	// Users that may log in; nil = guest/guest with every right.
	Users []User
	// TLS makes the server speak amqps, and offer SASL EXTERNAL: the user is the
	// common name of the client's certificate. Nil = plain TCP.
	TLS *tls.Config
	// ConsumerTimeout is how long a delivery may stay unacknowledged; zero =
	// 30 min, negative = for ever. [Server.SetConsumerTimeout] changes it.
	ConsumerTimeout time.Duration
	// Heartbeat the server proposes; zero = 60 s, negative = none.
	Heartbeat time.Duration
	// FrameMax in bytes the server proposes, at least 4096; zero = 131072.
	FrameMax int
	// ChannelMax is the number of channels per connection; zero = 2047.
	ChannelMax int
	// VirtualClock stops the server's clock: only [Server.Advance] moves it.
	VirtualClock bool
}

// User may log in. An empty permission allows everything; "^$" allows nothing.
type User struct {
	Name, Password string
	// VHosts it may open; nil = all.
	VHosts []string
	// Configure, Write and Read are RabbitMQ's permissions: regular expressions
	// over the names of queues and exchanges.
	Configure, Write, Read string
}

func (c Config) withDefaults() (Config, error) {
	var errs []error
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if c.VHosts == nil {
		c.VHosts = []string{"/"}
	}
	if c.Users == nil {
		c.Users = []User{{Name: "guest", Password: "guest"}}
	}
	for _, u := range c.Users {
		for _, expr := range []string{u.Configure, u.Write, u.Read} {
			if _, err := regexp.Compile(expr); err != nil {
				errs = append(errs, fmt.Errorf("amqptest: permission of user %q: %w", u.Name, err))
			}
		}
	}
	if c.ConsumerTimeout == 0 {
		c.ConsumerTimeout = 30 * time.Minute
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = time.Minute
	}
	if c.FrameMax == 0 {
		c.FrameMax = 131072
	}
	if c.FrameMax < frameMinSize {
		errs = append(errs, fmt.Errorf("amqptest: FrameMax %d: AMQP needs at least %d", c.FrameMax, frameMinSize))
	}
	if c.ChannelMax == 0 {
		c.ChannelMax = 2047
	}
	if c.ChannelMax < 0 || c.ChannelMax > 65535 {
		errs = append(errs, fmt.Errorf("amqptest: ChannelMax %d: must be within 1 and 65535", c.ChannelMax))
	}
	if c.Flavor < V3_10 || c.Flavor > V4_3 {
		errs = append(errs, fmt.Errorf("amqptest: Flavor %d: unknown", int(c.Flavor)))
	}
	return c, errors.Join(errs...)
}

// account is a user with its permissions compiled.
type account struct {
	User
	configure, write, read *regexp.Regexp
}

func newAccount(u User) *account {
	compile := func(expr string) *regexp.Regexp {
		if expr == "" {
			return nil
		}
		return regexp.MustCompile(expr) // checked by withDefaults
	}
	return &account{User: u, configure: compile(u.Configure), write: compile(u.Write), read: compile(u.Read)}
}

func (a *account) mayOpen(vhost string) bool {
	if a.VHosts == nil {
		return true
	}
	for _, v := range a.VHosts {
		if v == vhost {
			return true
		}
	}
	return false
}
