package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// Broker is a Kafka cluster. A consumer has its own connections, since a group
// member is one; so has a publisher. All methods are safe for concurrent use, and
// nothing needs closing but consumers and publishers.
type Broker struct {
	seeds   []string           // asked for the cluster; any one that answers is enough
	cfg     Config             // common to all consumers and publishers
	tried   func() optionFacts // what Config.Options amount to, found out once
	problem func() error       // everything that is wrong with addresses and cfg, found out once
}

// New describes a cluster by the addresses of some of its brokers, host:port; it
// does no I/O. Wrong addresses and configuration are reported by a source's Check
// and Open and by [Broker.Publisher], all at once.
func New(addrs []string, cfg Config) *Broker {
	seeds, bad := parseAddrs(addrs)
	cfg.Options = slices.Clone(cfg.Options)
	b := &Broker{seeds: seeds, cfg: cfg}
	b.tried = sync.OnceValue(cfg.tryOptions)
	b.problem = sync.OnceValue(func() error { return errors.Join(bad, cfg.check(), b.tried().problem, cfg.together()) })
	return b
}

// String names the cluster without credentials.
func (b *Broker) String() string { return "kafka at " + b.address() }

// GoString is String: a Broker holds secrets that no format may show.
func (b *Broker) GoString() string { return b.String() }

func (b *Broker) address() string { return strings.Join(b.seeds, ",") }

// Group is a source that consumes topics as a member of a consumer group.
func (b *Broker) Group(group string, topics []string, cfg GroupConfig) *Group {
	return &Group{b: b, topics: slices.Clone(topics), group: group, cfg: cfg, starts: newPositions()}
}

// Broadcast is a source that reads all partitions of the topics, whoever else reads them. It
// is a Group without a name: it commits nothing, and its position cannot be moved.
func (b *Broker) Broadcast(topics []string, cfg BroadcastConfig) *Group {
	return &Group{b: b, topics: slices.Clone(topics), starts: newPositions(), cast: true,
		cfg: GroupConfig{Start: cfg.Start, OutOfRange: cfg.OutOfRange, Isolation: cfg.Isolation, Window: cfg.Window, OversizedBatch: cfg.OversizedBatch, Declare: cfg.Declare}}
}

// options are those of every client.
func (b *Broker) options() []kgo.Opt {
	opts := append([]kgo.Opt{kgo.MaxDecompressBatchBytes(b.cfg.unpacked())}, b.cfg.Options...)
	opts = append(opts,
		kgo.SeedBrokers(b.seeds...),
		kgo.ClientID(or(b.cfg.ClientID, "longshore")),
		kgo.DialTimeout(or(b.cfg.DialTimeout, defaultDial)),
	)
	if t := b.cfg.tls(); t != nil {
		opts = append(opts, kgo.DialTLSConfig(t))
	}
	if m := b.cfg.SASL.mechanism(); m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts
}

// tls is a copy, since the client changes what it is given.
func (c *Config) tls() *tls.Config {
	switch {
	case c.TLSConfig != nil:
		return c.TLSConfig.Clone()
	case c.TLS:
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return nil
}

// check reports every mistake in the settings at once.
func (c *Config) check() error {
	l := &problem.List{Op: "kafka broker"}
	if c.MaxUnpacked < 0 || c.MaxUnpacked > math.MaxInt32 {
		l.Range("MaxUnpacked", c.MaxUnpacked, "from 1 to %d, or 0 for the default, 64 MiB", int64(math.MaxInt32))
	}
	s := &c.SASL
	switch s.Mechanism {
	case "", Plain, ScramSHA256, ScramSHA512:
		if s.Native == nil && (s.Mechanism != "" || !s.Password.IsZero()) && s.User == "" {
			l.Required("SASL.User", "set {SASL.User} and {SASL.Password}")
		}
		if s.Native == nil && s.User != "" && s.Password.IsZero() {
			l.Required("SASL.Password", "set {SASL.Password}{? to transport.Env, File, Static or Func}")
		}
	case OAuthBearer:
		if s.Password.IsZero() && s.Native == nil {
			l.Required("SASL.Password", "set it to where the token comes from")
		}
	default:
		l.Add(problem.Bad("SASL.Mechanism", "use Plain, ScramSHA256, ScramSHA512 or OAuthBearer, or set Native", "is %.40q, which is unknown", string(s.Mechanism)).OfKind(problem.UnknownWord))
	}
	if s.Native != nil && (s.Mechanism != "" || s.User != "" || !s.Password.IsZero()) {
		l.Conflict("SASL.Native", nil, "{SASL.Mechanism}, {SASL.User} or {SASL.Password}", "it is the whole login", "set one or the other")
	}
	if c.DialTimeout < 0 {
		l.Range("DialTimeout", c.DialTimeout, "positive, or 0 for the default, 5s")
	}
	l.Join(c.Outlet.check())
	return l.Err()
}

// mechanism asks for the secret at each login.
func (s *SASL) mechanism() sasl.Mechanism {
	user, secret := s.User, s.Password
	switch {
	case s.Native != nil:
		return s.Native
	case s.Mechanism == OAuthBearer:
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, err := secret.Get(ctx)
			return oauth.Auth{Token: token}, secretError(secret, err)
		})
	case s.Mechanism == ScramSHA256, s.Mechanism == ScramSHA512:
		get := func(ctx context.Context) (scram.Auth, error) {
			pass, err := secret.Get(ctx)
			return scram.Auth{User: user, Pass: pass}, secretError(secret, err)
		}
		if s.Mechanism == ScramSHA256 {
			return scram.Sha256(get)
		}
		return scram.Sha512(get)
	case user != "":
		return plain.Plain(func(ctx context.Context) (plain.Auth, error) {
			pass, err := secret.Get(ctx)
			return plain.Auth{User: user, Pass: pass}, secretError(secret, err)
		})
	}
	return nil
}

// secretError names where the secret comes from, never the secret.
func secretError(s transport.Secret, err error) error {
	if err == nil {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeAuth, Op: "get the kafka password from " + s.From(), Err: err}
}

// fetchBytes bounds what one answer of a broker brings.
const (
	fetchBytes     = 16 << 20
	partitionBytes = 1 << 20
)

// consuming are the options of a consumer's client, but for its group.
func (s *Group) consuming() []kgo.Opt {
	reset := kgo.NewOffset().AtStart()
	switch s.cfg.OutOfRange {
	case ToEarliest:
	case ToLatest:
		reset = kgo.NewOffset().AtEnd()
	case Fail:
		reset = kgo.NoResetOffset()
	}
	isolation := kgo.ReadCommitted()
	if s.cfg.Isolation == ReadUncommitted {
		isolation = kgo.ReadUncommitted()
	}
	// Ours that a user may replace come before the user's own.
	opts := []kgo.Opt{
		kgo.FetchMaxWait(fetchWait), kgo.FetchMaxBytes(fetchBytes), kgo.FetchMaxPartitionBytes(partitionBytes),
		kgo.MetadataMaxAge(metadataAge), kgo.MetadataMinAge(time.Second),
	}
	opts = append(opts, s.b.options()...)
	opts = append(opts,
		kgo.ConsumeResetOffset(reset),
		kgo.FetchIsolationLevel(isolation),
		kgo.KeepControlRecords(), // or a transaction's marker at the end is a lag for ever
		kgo.KeepRetryableFetchErrors(),
	)
	if s.b.cfg.Rack != "" {
		opts = append(opts, kgo.Rack(s.b.cfg.Rack))
	}
	return opts
}
