package mutex

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// HeaderMutex is the header with the id of the mutex row.
const HeaderMutex = "x-message-mutex"

// HeaderRelayed marks what a relay has sent: it may be a second copy.
const HeaderRelayed = "x-message-relayed"

// Config is how a [Mutex] works. The zero value takes rows of longshore_mutex by
// the header x-message-mutex.
type Config struct {
	// Mode is what keeps a message from being done twice. Zero: [Lock].
	Mode Mode
	// Tables are the names of the tables.
	Tables Tables
	// Headers are the names under which the id may come, the first found counts.
	// Zero: x-message-mutex, x-mutex-id.
	Headers []string

	// Busy is what becomes of a delivery whose row is held elsewhere. Zero: [ComeBack].
	Busy Busy
	// BusyDelay is how long it stays away at first; each time twice as long, up to
	// 20 times. Zero: 500 ms.
	BusyDelay time.Duration
	// BusyMax is how long a row may be found held before the delivery is
	// dead-lettered. Zero: for ever, with a warning each 5 minutes.
	BusyMax time.Duration
	// Absent is what becomes of a delivery without a row. Zero: [AckAbsent].
	Absent Absent
	// Delete is when the row is deleted. Zero: [DeleteFirst].
	Delete Delete
	// NoUniqueIndex accepts a mutex table whose id column has no unique index, as some
	// older deployments have it. The ids themselves must be unique, by a sequence: rows
	// with the same id are taken together, counted in [Stats].Duplicates and logged.
	// PostgreSQL then reads the whole table for each message. MySQL still needs an index
	// that begins with the column, since a lock would hold up all other rows.
	NoUniqueIndex bool
	// NoHeader is what becomes of a delivery without an id, in mode [Lock]. Zero:
	// [RejectNoHeader].
	NoHeader NoHeader

	// Consumer is the name under which the inbox remembers what was done: the same
	// in all instances and on all brokers that feed the same handler. Required with
	// the inbox, at most 64 bytes.
	Consumer string
	// Retention is how long the inbox remembers. It must be longer than any message
	// can stay away: retention of the topic, dead-letter queues. Required with the
	// inbox, at least 7 days unless ShortRetention.
	Retention time.Duration
	// PurgeEvery is how often a [Purger] looks for rows older than Retention. Zero: 1 h.
	PurgeEvery time.Duration
	// ShortRetention allows less than 7 days.
	ShortRetention bool
	// Identity is the id of a message for the inbox. nil: longshore.Identity.
	Identity func(*longshore.Delivery) string

	// LockTimeout bounds the wait for a connection and the row together. Zero: 5 s.
	LockTimeout time.Duration
	// CommitTimeout bounds the commit; after it the outcome is unknown. Zero: 10 s.
	CommitTimeout time.Duration
	// HasOutbox says that the outbox table is in the same database, for Rows.
	HasOutbox bool

	// Classify is asked before [Classify] of this package. nil or ClassOther: that one.
	Classify func(error) Class
	// Logger gets warnings. nil: stderr; zap.NewNop() is silence.
	Logger *zap.Logger
}

// Mode is what keeps a message from being done twice.
type Mode uint8

const (
	// Lock takes the row that the producer inserted with its business data. One
	// row serves one consumer: with fan-out use Inbox.
	Lock Mode = iota
	// Inbox inserts a row for each message: for producers that insert none, for
	// fan-out, and for messages that come by several brokers.
	Inbox
)

// Busy is what becomes of a delivery whose row is held elsewhere.
type Busy uint8

const (
	// ComeBack releases it: it comes again later and that is not a failed attempt.
	ComeBack Busy = iota
	// DeadLetter rejects it at once. It is a copy: the doctor says when it may be
	// deleted.
	DeadLetter
)

// Absent is what becomes of a delivery without a row.
type Absent uint8

const (
	// AckAbsent takes it for done. It is, if the producer publishes after its
	// commit and into the same database.
	AckAbsent Absent = iota
	// Confirm lets it come back once, after 2 s, before that.
	Confirm
	// RejectAbsent dead-letters it with code state: for producers whose every message has
	// a row, so that a second copy is looked at by a person.
	RejectAbsent
	// HandleAbsent gives it to the handler, in a transaction without protection: a second
	// copy is handled again.
	HandleAbsent
)

// Delete is when the row of a message is deleted, always in the handler's transaction.
type Delete uint8

const (
	// DeleteFirst deletes it at once. The delete holds the row's lock until the commit, so
	// that it saves a statement, and a handler that commits the transaction itself leaves
	// no row behind that would run its effects again.
	DeleteFirst Delete = iota
	// DeleteLast locks the row (SELECT … FOR UPDATE, without waiting) and deletes it after
	// the handler: for handlers and triggers that read it. SQLite has no row locks and
	// refuses it.
	DeleteLast
)

// NoHeader is what becomes of a delivery without an id.
type NoHeader uint8

const (
	// RejectNoHeader dead-letters it with an error that says so.
	RejectNoHeader NoHeader = iota
	// PassThrough gives it to the handler in a transaction without protection
	// against duplicates.
	PassThrough
	// UseInbox protects it as in mode Inbox.
	UseInbox
)

const (
	defaultBusyDelay     = 500 * time.Millisecond
	defaultLockTimeout   = 5 * time.Second
	defaultCommitTimeout = 10 * time.Second
	defaultPurgeEvery    = time.Hour
	busyGrowth           = 20 // BusyDelay grows up to so many times
	confirmDelay         = 2 * time.Second
	troubleDelay         = 10 * time.Second // the database will not be better in a second
	minRetention         = 7 * 24 * time.Hour
	maxConsumer          = 64
)

func (c Config) defaults() Config {
	if len(c.Headers) == 0 {
		c.Headers = []string{HeaderMutex, "x-mutex-id"}
	}
	orDuration(&c.BusyDelay, defaultBusyDelay)
	orDuration(&c.LockTimeout, defaultLockTimeout)
	orDuration(&c.CommitTimeout, defaultCommitTimeout)
	orDuration(&c.PurgeEvery, defaultPurgeEvery)
	if c.Identity == nil {
		c.Identity = longshore.Identity
	}
	c.Logger = logs.OrStderr(c.Logger, zapcore.WarnLevel)
	c.Tables = c.Tables.defaults()
	return c
}

func (c *Config) inbox() bool { return c.Mode == Inbox || c.NoHeader == UseInbox }

func (c *Config) check() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Mode > Inbox || c.Busy > DeadLetter || c.Absent > HandleAbsent || c.Delete > DeleteLast || c.NoHeader > UseInbox {
		add("Mode, Busy, Absent, Delete or NoHeader has a value that does not exist")
	}
	for name, d := range map[string]time.Duration{"BusyDelay": c.BusyDelay, "BusyMax": c.BusyMax,
		"LockTimeout": c.LockTimeout, "CommitTimeout": c.CommitTimeout, "Retention": c.Retention, "PurgeEvery": c.PurgeEvery} {
		if d < 0 {
			add("%s: %v is negative", name, d)
		}
	}
	for _, h := range c.Headers {
		if h == "" {
			add("Headers: a name is empty")
		}
	}
	if c.inbox() {
		if c.Consumer == "" || len(c.Consumer) > maxConsumer {
			add("Consumer: the inbox needs a name of at most %d bytes", maxConsumer)
		}
		if c.Retention < minRetention && !c.ShortRetention {
			add("Retention: %v is shorter than 7 days; a message that comes later would be done again (ShortRetention allows it)", c.Retention)
		}
		if c.Retention == 0 && c.ShortRetention {
			add("Retention: the inbox needs one")
		}
	}
	errs = append(errs, c.Tables.check())
	return errors.Join(errs...)
}

func orDuration(d *time.Duration, v time.Duration) {
	if *d == 0 {
		*d = v
	}
}
