package kafka

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// place is where records are: topics of a cluster.
type place struct {
	b      *Broker
	topics []string
}

// groupSource is topics read as a group, or by everybody for himself.
type groupSource struct {
	place
	group  string
	cast   bool
	cfg    GroupConfig
	starts *positions
}

// positions remembers over reopenings where partitions without a commit began, or
// how far a broadcast has come: a start at the end must not move on with it.
type positions struct {
	mu    sync.Mutex
	at    map[partitionOf]int64
	first map[string][16]byte // the identity that each topic had first; zero: another than now
	parts map[string]int      // and how many partitions
	all   bool                // they are all topics that there were
}

// tp names a partition of whatever has the topic's name now.
type tp struct {
	topic string
	num   int32
}

// partitionOf names a partition of one incarnation of a topic.
type partitionOf struct {
	topic string
	id    [16]byte
	num   int32
}

func newPositions() *positions {
	return &positions{at: map[partitionOf]int64{}, first: map[string][16]byte{}, parts: map[string]int{}}
}

// read notes that a topic is read under an identity.
func (p *positions) read(topic string, id [16]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.first[topic]; !known && id != [16]byte{} {
		p.first[topic] = id
	}
}

// formerly notes that somebody has read a topic under another identity.
func (p *positions) formerly(topic string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first[topic] = [16]byte{}
}

// anew: the topic was read before under another identity.
func (p *positions) anew(k partitionOf) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, known := p.first[k.topic]
	return known && k.id != [16]byte{} && first != k.id
}

// seen notes how many partitions a topic has, 0 before it was made.
func (p *positions) seen(topic string, partitions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.parts[topic]; !known {
		p.parts[topic] = partitions
	}
}

// listed notes all topics that there are before those of a pattern are read.
func (p *positions) listed(topics map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.all {
		p.parts, p.all = topics, true
	}
}

// came: the partition was made while its topic, or its pattern, was read. It may have
// records before anybody is assigned it.
func (p *positions) came(k partitionOf) bool {
	if p.anew(k) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known := p.parts[k.topic]
	return known && int(k.num) >= n || !known && p.all
}

func (p *positions) get(k partitionOf) (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.at[k]
	return at, ok
}

func (p *positions) set(k partitionOf, at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[k] = at
}

func (p *positions) forget(k partitionOf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.at, k)
}

// Open connects, checks that topics and group can be used, creates what Declare
// asks for, and subscribes. Partitions are assigned later, when the group allows.
func (s *groupSource) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := s.ValidateOpen(o); err != nil {
		return nil, err
	}
	c := newConsumer(s, o)
	opts := s.consuming()
	unpack, err := newUnpacker(s.b.cfg.Options, s.b.cfg.unpacked())
	if err != nil {
		return nil, err
	}
	c.unpack, opts = unpack, append(opts, kgo.WithDecompressor(unpack))
	if !s.cast {
		kept, err := s.b.keepingSession(c.inSession)
		if err != nil {
			return nil, badConfig("Options", firstLine(err.Error()), "")
		}
		opts = append(append(opts, c.grouped()...), kept...)
	}
	life, kill := context.WithCancel(context.Background())                                   // not ctx's: that is the opening's
	cl, err := kgo.NewClient(append(opts, kgo.WithHooks(&c.link), kgo.WithContext(life))...) //nolint:contextcheck // see life
	c.kill = kill
	if err != nil {
		kill()
		return nil, badConfig("Options", firstLine(err.Error()), "")
	}
	c.cl = cl
	if err := c.subscribe(ctx, o); err != nil {
		c.abandon() //nolint:contextcheck // also when ctx has ended
		return nil, s.b.opened(s.opening(), s.name(), err)
	}
	c.run()
	return c, nil
}

func (s *groupSource) opening() string { return "open " + s.title() + " at " + s.b.address() }

// grouped are the options of a group member.
func (c *consumer) grouped() []kgo.Opt {
	cfg := &c.src.cfg
	opts := []kgo.Opt{
		kgo.ConsumerGroup(c.src.group), kgo.DisableAutoCommit(),
		kgo.OnOffsetsFetched(c.fetched), kgo.AdjustFetchOffsetsFn(c.assign),
		kgo.OnPartitionsRevoked(c.revoked), kgo.OnPartitionsLost(c.lost),
		kgo.RebalanceTimeout(cfg.rebalance()), kgo.SessionTimeout(or(cfg.SessionTimeout, defaultSession)),
	}
	if cfg.Protocol == Consumer {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	if cfg.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(cfg.InstanceID))
	}
	if cfg.Pattern {
		opts = append(opts, kgo.ConsumeRegex(), kgo.ConsumeTopics(c.src.topics...))
	}
	return opts
}

// Capabilities is the same for all topics.
func (s *groupSource) Capabilities() transport.Capabilities {
	return transport.Capabilities{
		Ordering: longshore.OrderPartition, Keyed: true, Partitions: true,
		Delay: true, Attempts: true, HeadOfLineBlocking: true, KeepsPlace: true, LiveResize: true, OpensPaused: true,
	}
}

// Describe names the source.
func (s *groupSource) Describe() transport.Description {
	d := transport.Description{Transport: "kafka", Kind: "group", Name: s.name(), Address: s.b.address()}
	if s.cast {
		d.Kind = "broadcast"
	}
	return d
}

func (s *groupSource) name() string { return strings.Join(s.topics, ",") }

func (s *groupSource) title() string {
	if s.cast {
		return fmt.Sprintf("kafka broadcast of %q", s.name())
	}
	return fmt.Sprintf("kafka group %q", s.group)
}

// Check reports all that is wrong with the configuration, the broker's included.
func (s *groupSource) Check() error {
	l := &problem.List{Op: s.title(), Source: s.name()}
	l.Join(s.b.problem())
	if s.group == "" && !s.cast {
		l.Add(problem.Bad("", "name a consumer group", "the group has no name").OfKind(problem.Missing))
	}
	if len(s.topics) == 0 {
		l.Add(problem.Bad("", "name at least one", "no topic is named").OfKind(problem.Missing))
	}
	seen := map[string]bool{}
	for _, t := range s.topics {
		if seen[t] {
			l.Bad("", "name it once", "topic %q is named twice", t)
		}
		seen[t] = true
		if !s.cfg.Pattern && !validTopic(t) {
			l.Bad("", topicHint, "topic %.260q is not a valid topic name", t)
		}
	}
	s.cfg.check(l)
	s.together(l)
	return l.Err()
}

const topicHint = "use letters, digits, dots, underscores and hyphens, at most 249"

func validTopic(name string) bool {
	bad := name == "" || name == "." || name == ".." || len(name) > 249
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
		default:
			bad = true
		}
	}
	return !bad
}

// check finds what is wrong with single settings.
func (g *GroupConfig) check(l *problem.List) {
	for _, t := range []struct {
		field string
		value time.Duration
	}{
		{"SettleLinger", g.SettleLinger}, {"RebalanceDrain", g.RebalanceDrain}, {"RebalanceTimeout", g.RebalanceTimeout}, {"SessionTimeout", g.SessionTimeout},
	} {
		if t.value < 0 {
			l.Range(t.field, t.value, "positive, or 0 for the default")
		}
	}
	for _, n := range []struct {
		field string
		value int
	}{{"Declare.Partitions", int(g.Declare.Partitions)}, {"Declare.Replicas", int(g.Declare.Replicas)}} {
		if n.value < 0 {
			l.Range(n.field, n.value, "positive, or 0")
		}
	}
	if g.Window < 0 || g.Window > maxWindow {
		l.Range("Window", g.Window, "from 1 to %d, or 0 for the default", maxWindow)
	}
	if g.RebalanceDrain > g.rebalance()/2 {
		l.Range("RebalanceDrain", g.RebalanceDrain, "at most half of {RebalanceTimeout}, which is %s: the group would take the partitions away while handlers run", g.rebalance())
	}
	if g.Start < Latest {
		l.Bad("Start", "use {Earliest}, {Latest}{? or StartAt}", "is not a position to start at")
	}
	for _, w := range []struct {
		field   string
		unknown bool
	}{{"OutOfRange", g.OutOfRange > Fail}, {"Protocol", g.Protocol > Consumer}, {"Isolation", g.Isolation > ReadUncommitted}} {
		if w.unknown {
			l.Add(problem.Bad(w.field, "use one of its constants", "has an unknown value").OfKind(problem.UnknownWord))
		}
	}
	if g.Declare.Partitions == 0 && (g.Declare.Replicas != 0 || len(g.Declare.Settings) > 0) {
		l.Add(problem.Bad("Declare.Partitions", "set {Declare.Partitions}", "is not set, but {Declare.Replicas} or {Declare.Settings} is").OfKind(problem.Missing))
	}
}

// Publisher returns a publisher on the same cluster, as Config.Outlet says, and the first
// topic.
func (s *groupSource) Publisher(context.Context) (transport.Publisher, string, error) {
	p, err := s.b.Publisher(s.b.cfg.Outlet)
	if err != nil {
		return nil, "", err
	}
	return p, s.topics[0], nil
}

// Probe connects and looks whether topics and group can be used.
func (s *groupSource) Probe(ctx context.Context) error {
	if err := s.Check(); err != nil {
		return err
	}
	cl, err := kgo.NewClient(s.b.options()...)
	if err != nil {
		return badConfig("Options", firstLine(err.Error()), "")
	}
	defer cl.Close()
	_, err = s.look(ctx, cl)
	return s.b.opened("probe "+s.title()+" at "+s.b.address(), s.name(), err)
}
