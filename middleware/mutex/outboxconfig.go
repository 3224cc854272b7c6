package mutex

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// OutboxConfig is how an [Outbox] and its [Relay] work. The zero value works.
type OutboxConfig struct {
	// Tables are the names of the tables.
	Tables Tables
	// Header is the name under which the id of the mutex row is sent. Zero: x-message-mutex.
	Header string
	// NewID makes the ids, at most 64 characters of ASCII. An id must never come
	// twice. nil: UUIDs that begin with the time; see also [NumericID] and [SequenceID].
	NewID func(ctx context.Context, tx Execer) (string, error)
	// NoMutex inserts no mutex row and sends no header: for consumers with an
	// [Inbox], who would leave the rows behind.
	NoMutex bool

	// RelayOnly leaves all messages to the relay. Otherwise those without a key are
	// published right after the commit.
	RelayOnly bool
	// Grace is how long the relay leaves a message to whoever publishes it after the
	// commit, counted by the database's clock from the moment at which a relay first sees
	// the message. Zero: 5 s; at most 24 h.
	Grace time.Duration
	// PublishTimeout bounds one call of the publisher. Zero: 10 s.
	PublishTimeout time.Duration

	// Batch is how many rows a relay takes at once. Zero: 100.
	Batch int
	// Relays is how many parts of the outbox one relay works on at the same time, at
	// most 8. Each holds a connection. Zero: 4.
	Relays int
	// Poll is how often an idle relay looks; it backs off to ten times that. Zero: 200 ms.
	Poll time.Duration
	// MaxAttempts is how often a message may be refused by the broker before it is
	// parked. A broker that cannot be reached counts nothing. Zero: 10.
	MaxAttempts int
	// RetryDelay is the pause after a refusal, doubled with each up to 5 min. Zero: 1 s.
	RetryDelay time.Duration
	// PassParked lets messages overtake a parked one of the same key. Otherwise they
	// wait until a person has dealt with it.
	PassParked bool
	// Logger gets warnings. nil: stderr; zap.NewNop() is silence.
	Logger *zap.Logger
}

const (
	defaultGrace          = 5 * time.Second
	defaultPublishTimeout = 10 * time.Second
	defaultBatch          = 100
	defaultRelays         = 4
	defaultPoll           = 200 * time.Millisecond
	defaultMaxAttempts    = 10
	defaultRetryDelay     = time.Second
	maxRetryDelay         = 5 * time.Minute
	pollGrowth            = 10

	// parkedDue is the due time of rows that are parked: beyond any clock.
	parkedDue = int64(1) << 52
	maxGrace  = 24 * time.Hour
)

func (c OutboxConfig) defaults() OutboxConfig {
	c.Tables = c.Tables.defaults()
	if c.Header == "" {
		c.Header = HeaderMutex
	}
	if c.NewID == nil {
		c.NewID = func(context.Context, Execer) (string, error) { return newID(), nil }
	}
	orDuration(&c.Grace, defaultGrace)
	orDuration(&c.PublishTimeout, defaultPublishTimeout)
	orDuration(&c.Poll, defaultPoll)
	orDuration(&c.RetryDelay, defaultRetryDelay)
	orInt(&c.Batch, defaultBatch)
	orInt(&c.Relays, defaultRelays)
	orInt(&c.MaxAttempts, defaultMaxAttempts)
	c.Logger = logs.OrStderr(c.Logger, zapcore.WarnLevel)
	return c
}

func (c *OutboxConfig) check() error {
	var errs []error
	for name, d := range map[string]time.Duration{"Grace": c.Grace, "PublishTimeout": c.PublishTimeout, "Poll": c.Poll, "RetryDelay": c.RetryDelay} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s: %v is negative", name, d))
		}
	}
	if c.Grace > maxGrace {
		errs = append(errs, fmt.Errorf("the Grace of %v is longer than %v", c.Grace, maxGrace))
	}
	if c.Batch < 1 || c.Batch > 1000 {
		errs = append(errs, fmt.Errorf("%s: %d is not in 1..1000", "Batch", c.Batch))
	}
	if c.Relays < 1 || c.Relays > shardCount {
		errs = append(errs, fmt.Errorf("%s: %d is not in 1..%d", "Relays", c.Relays, shardCount))
	}
	if c.MaxAttempts < 1 {
		errs = append(errs, fmt.Errorf("MaxAttempts: %d is less than 1", c.MaxAttempts))
	}
	return errors.Join(append(errs, c.Tables.check())...)
}

func orInt(n *int, v int) {
	if *n == 0 {
		*n = v
	}
}

func configError(op string, err error) error {
	return &longshore.Error{Code: longshore.CodeConfig, Op: op, Err: err, Hint: "see go doc mutex"}
}
