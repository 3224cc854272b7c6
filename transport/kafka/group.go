package kafka

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// Group is a source of records: topics that are read as a member of a consumer group, see
// [Broker.Group], or by every instance for itself, see [Broker.Broadcast]. It describes and
// checks itself without connecting; each Open makes connections of its own.
type Group struct {
	b      *Broker     // the cluster
	topics []string    // names, or one pattern
	group  string      // "" for a broadcast
	cast   bool        // a broadcast: no group, nothing is committed
	cfg    GroupConfig // as given
	starts *positions  // outlives each opening
	label  string      // how errors name it; "" = by group and cast
}

var (
	_ transport.Source    = (*Group)(nil)
	_ transport.Describer = (*Group)(nil)
	_ transport.Checker   = (*Group)(nil)
	_ transport.Validator = (*Group)(nil)
	_ transport.Outlet    = (*Group)(nil)
	_ transport.Browser   = (*Group)(nil)
	_ transport.Prober    = (*Group)(nil)
	_ transport.Preparer  = (*Group)(nil)
)

// Open connects, checks that topics and group can be used, creates what Declare
// asks for, and subscribes. Partitions are assigned later, when the group allows.
func (s *Group) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := s.ValidateOpen(o); err != nil {
		return nil, err
	}
	if s.cfg.Members > 1 {
		return s.openMembers(ctx, o)
	}
	c, err := s.openMember(ctx, o, newTurns(o.Paused))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// openMember opens one member, which hands out through turns.
func (s *Group) openMember(ctx context.Context, o transport.OpenOptions, t *turns) (*consumer, error) {
	c := newConsumer(s, o, t)
	if err := c.connect(); err != nil { //nolint:contextcheck // ctx is the opening's, not the client's
		return nil, err
	}
	if err := c.subscribe(ctx, o); err != nil {
		c.abandonOpen() //nolint:contextcheck // also when ctx has ended
		return nil, s.b.opened(s.opening(), s.name(), err)
	}
	c.run()
	return c, nil
}

func (s *Group) opening() string { return "open " + s.title() + " at " + s.b.address() }

// Capabilities is the same for all topics.
func (s *Group) Capabilities() transport.Capabilities {
	return transport.Capabilities{
		Ordering: longshore.OrderPartition, Keyed: true, Partitions: true,
		Delay: true, Attempts: true, HeadOfLineBlocking: true, KeepsPlace: true, LiveResize: true, OpensPaused: true,
	}
}

// Describe names the source.
func (s *Group) Describe() transport.Description {
	d := transport.Description{Transport: "kafka", Kind: "group", Name: s.name(), Address: s.b.address(), Place: "topic"}
	if s.cast {
		d.Kind = "broadcast"
	}
	return d
}

// committedOnly reports whether records of open transactions count.
func (s *Group) committedOnly() bool { return s.cfg.Isolation == ReadCommitted }

// name is the topics, which are one name for people who look.
func (s *Group) name() string { return strings.Join(s.topics, ",") }

// title names the source with its kind, for errors and the log.
func (s *Group) title() string {
	switch {
	case s.label != "":
		return s.label
	case s.cast:
		return fmt.Sprintf("kafka broadcast of %q", s.name())
	}
	return fmt.Sprintf("kafka group %q", s.group)
}

// Check reports all that is wrong with the configuration, the broker's included.
func (s *Group) Check() error {
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
	s.cfg.checkMembers(l)
	s.checkTransactional(l)
	s.together(l)
	return l.Err()
}

const topicHint = "use letters, digits, dots, underscores and hyphens, at most 249"

// validTopic applies the broker's own rules, so that a typing error is found without a call.
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

// check finds mistakes in single settings.
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
func (s *Group) Publisher(context.Context) (transport.Publisher, string, error) {
	p, err := s.b.Publisher(s.b.cfg.Outlet)
	if err != nil {
		return nil, "", err
	}
	if s.cfg.Transactional != nil {
		return txOutlet{p, s.b}, s.topics[0], nil
	}
	return p, s.topics[0], nil
}

// Probe connects and looks whether topics and group can be used.
func (s *Group) Probe(ctx context.Context) error {
	if err := s.Check(); err != nil {
		return err
	}
	cl, err := kgo.NewClient(s.b.options()...)
	if err != nil {
		return badOptions(err)
	}
	defer cl.Close()
	_, err = s.look(ctx, cl)
	return s.b.opened("probe "+s.title()+" at "+s.b.address(), s.name(), err)
}

// RemovalCommand implements [transport.Removable].
func (s *Group) RemovalCommand() string {
	return fmt.Sprintf("kafka-topics.sh --bootstrap-server %s --delete --topic %s", s.b.address(), s.name())
}
