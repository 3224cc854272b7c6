package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// BridgeFile is read by longshore bridge where no file is named.
const BridgeFile = "bridge.yaml"

// routeSection is one route of the bridge: bridge.yaml, or the section bridge of longshore.yaml.
type routeSection struct {
	From *sourceSection `key:"from" own:"true" whole:"true" like:"{broker: old, queue: orders, key: header:customer-id}" doc:"The place that is emptied, with the keys of a source. On Kafka group is the group of the old consumers."`
	To   *sourceSection `key:"to" own:"true" whole:"true" like:"{broker: new, topic: orders, group: shop, declare: {partitions: 12}}" doc:"The place that is filled, with the keys of a source. On Kafka group is the group of the new consumers."`

	DeadLetters *lettersSection `key:"dead_letters" like:"{from: orders.dlq, to: orders-dlq}" doc:"Where the dead letters are, and where they go. Absent: they stay."`

	ID         string   `key:"id" def:"longshore-id, the broker's own id, or message-id" like:"header:order-id" doc:"What identifies a message: message-id, header:NAME or body. Two messages must not have one identity."`
	Unsendable string   `key:"on_unsendable" oneof:"park|stop" def:"park" doc:"What happens to a message that the target refuses for good: it goes to park, or the route stops and it stays."`
	Park       string   `key:"park" def:"the queue's name with .parked, on SQS with -parked, before .fifo" doc:"Where messages go that the target refuses for good, on the source's broker."`
	Accept     []string `key:"accept" like:"[PRIORITY]" doc:"Findings of longshore bridge check that are accepted."`
	Ledger     string   `key:"ledger" def:"./ledger" doc:"Directory of the record of what was moved, and of the state of the move; relative to the file. off: no record, so nothing can be verified."`

	Inbox *inboxSection `key:"inbox" like:"{consumer: shop}" doc:"The inbox of the new consumers: verify compares it with what has arrived. Its database is that of --db or LONGSHORE_DB."`

	Rate    *float64      `key:"rate" like:"3000" doc:"Most messages a second. Absent: no limit."`
	Workers int           `key:"workers" def:"64" doc:"Most messages on their way at once."`
	Quiet   time.Duration `key:"quiet" def:"60s" doc:"How long nothing may arrive before the old side counts as empty."`
}

// lettersSection moves the dead letters of a route along with its messages.
type lettersSection struct {
	From string `key:"from" like:"orders.dlq" doc:"Queue or topic of the dead letters, on the source's broker."`
	To   string `key:"to" like:"orders-dlq" doc:"Queue or topic that they go to, on the target's broker."`
}

// inboxSection names the inbox in which verify looks for the effects of the messages.
type inboxSection struct {
	Consumer string `key:"consumer" like:"shop" doc:"Name of the consumers in the inbox."`
	Table    string `key:"table" def:"longshore_inbox" doc:"The inbox table."`
}

// InboxEvidence is where an inbox has the effects of a route's messages.
type InboxEvidence struct{ Consumer, Table string }

// Route is one route of the section bridge.
type Route struct {
	Name string
	// From and To are the two places. Each is both: a rollback goes from To to From.
	From, To transport.Source
	// Look is From for a look at its messages that counts as a delivery.
	Look transport.Source
	// LettersFrom and LettersTo are those of the dead letters; nil: they stay where they are.
	LettersFrom, LettersTo transport.Source
	// Identity is nil for the default rule; IdentityRule is what the file says.
	Identity     bridge.IdentityRule
	IdentityRule string
	Park         string
	// Parked is the place behind Park, to move on what is there.
	Parked transport.Source
	Accept []string
	// Ledger is a directory; "" if the file says off.
	Ledger string
	// StateDir is where the state of a move is: Ledger, or its default place if the file says off.
	StateDir string
	// Container has the limits that the file sets.
	Container container.Config
	// Quiet is how long nothing may arrive before a side counts as empty.
	Quiet time.Duration
	// Declare are sources to open once, so that what they declare exists.
	Declare []transport.Source
	// Spare are made if they are missing, and used as they are if not: the parking place and the
	// target's dead-letter destination.
	Spare []transport.Source
	// Tap and Shadow are the ends of a mirror: a second queue with the bindings of the first,
	// and a topic or queue to be thrown away. Tap is nil where no bindings are in the file.
	Tap, Shadow transport.Source
	// HeadersExchange: the source's bindings in the file use one.
	HeadersExchange bool
	// Seed has the positions of the new consumers' group; nil where the target is not a Kafka topic.
	Seed *kafka.GroupSeed
	// Lock is a Kafka group that keeps two moves apart where no side is RabbitMQ; else nil.
	Lock transport.Source
	// OnUnsendable is what happens to a message that the target refuses for good.
	OnUnsendable bridge.Unsendables
	// Rate is in messages a second; 0 = no limit.
	Rate float64
	// Inbox is nil if the file names none.
	Inbox *InboxEvidence
	// OldURL and NewURL are the brokers' URLs without secrets.
	OldURL, NewURL string
}

// Findings are the codes that longshore bridge check knows and a file may accept.
func Findings() []string {
	return []string{"NO-ID", "NO-KEY", "HOT-KEY", "TOO-LARGE", "TTL", "PRIORITY", "REPLY-TO", "HEADERS-EXCHANGE", "DELAYED"}
}

// Routes are the routes in the order of their names.
func (c *Config) Routes() []string { return slices.Sorted(maps.Keys(c.loader.file.Bridge)) }

// Route is the route of that name. Its error is [CodeMissing] if the file has none.
func (c *Config) Route(name string) (Route, error) {
	s, ok := c.loader.file.Bridge[name]
	if !ok {
		hint := "the file has no bridge section: longshore bridge --help has an example"
		if names := c.Routes(); len(names) > 0 {
			hint = "known: " + strings.Join(names, ", ")
		}
		return Route{}, &longshore.Error{Code: CodeMissing, Op: "configuration " + c.loader.name, Source: name, Err: fmt.Errorf("unknown route %q", name), Hint: hint}
	}
	return c.sources.route(name, s)
}

// route makes the sources of a route, and those that a move needs near its two places. Nothing is
// opened.
func (o *sources) route(name string, s *routeSection) (r Route, err error) {
	r = Route{Name: name, Park: s.Park, Accept: s.Accept, Quiet: s.Quiet, IdentityRule: s.ID, Identity: s.identity(), Ledger: s.ledger(o.on),
		StateDir: cmp.Or(s.ledger(o.on), o.on.beside("ledger")), OldURL: o.shownURL(s.From), NewURL: o.shownURL(s.To)}
	if r.From, err = o.source(s.From); err != nil {
		return r, err
	}
	if r.To, err = o.source(s.To); err != nil {
		return r, err
	}
	seen := *s.From
	seen.BrowseCounts = true
	if r.Look, err = o.source(&seen); err != nil {
		return r, err
	}
	if o.kindBehind(s.To) == onKafka && len(s.To.Topics) == 1 && s.To.Broker != "" {
		r.Seed = o.brokers[s.To.Broker].kafka.Seed(s.To.Group, s.To.Topics[0])
	}
	if s.Unsendable == "stop" {
		r.OnUnsendable = bridge.StopRoute
	}
	if d := s.DeadLetters; d != nil {
		r.LettersFrom, r.LettersTo = o.near(s.From, d.From, nil), o.near(s.To, d.To, nil)
	}
	if r.Park == "" {
		r.Park = bridge.Beside(describe(r.From), "parked")
	}
	r.Parked = o.near(s.From, r.Park, nil)
	r.Declare, r.Spare = o.declared(s, r.Park)
	r.Tap, r.Shadow = o.mirror(s, describe(r.To))
	r.Lock = o.lock(name, s)
	if d := s.From.Declare; d != nil {
		r.HeadersExchange = slices.ContainsFunc(d.Bindings, func(b bindingSection) bool { return b.Kind == "headers" })
	}
	if s.Rate != nil {
		r.Rate = *s.Rate
	}
	r.Container.Workers = container.Workers{Min: min(8, max(s.Workers, 1)), Max: s.Workers}
	if s.Workers == 0 {
		r.Container.Workers = container.Workers{}
	}
	if s.Inbox != nil {
		r.Inbox = &InboxEvidence{Consumer: s.Inbox.Consumer, Table: cmp.Or(s.Inbox.Table, "longshore_inbox")}
	}
	if r.Quiet == 0 {
		r.Quiet = time.Minute
	}
	return r, nil
}

// identity is the rule that id names; nil: the bridge's own.
func (s *routeSection) identity() bridge.IdentityRule {
	switch name, isHeader := strings.CutPrefix(s.ID, headerPrefix); {
	case isHeader:
		return bridge.ByHeader(name)
	case s.ID == "message-id":
		return bridge.ByMessageID
	case s.ID == "body":
		return bridge.ByBody
	}
	return nil
}

// ledger is a directory next to the file, so that it does not depend on where the command was
// called from.
func (s *routeSection) ledger(on *surroundings) string {
	switch s.Ledger {
	case "off":
		return ""
	case "":
		return on.beside("ledger")
	}
	return on.beside(s.Ledger)
}

// kindBehind is the kind of broker of a source.
func (o *sources) kindBehind(s *sourceSection) string {
	if s.URL != "" {
		return kindOf(s.URL)
	}
	if b := o.sections[s.Broker]; b != nil {
		return kindOf(b.URL)
	}
	return ""
}

// shownURL is the URL of a source's broker, without secrets.
func (o *sources) shownURL(s *sourceSection) string {
	if s.URL != "" {
		return maskURL(s.URL)
	}
	if b := o.sections[s.Broker]; b != nil {
		return maskURL(b.URL)
	}
	return ""
}

// near is another queue or topic on the broker of a source, made if it is missing where
// declare says how; nil if the broker has no name in the file. On Kafka a group of the bridge's
// own reads it.
func (o *sources) near(s *sourceSection, name string, declare *declareSection) transport.Source {
	if s.Broker == "" || name == "" {
		return nil
	}
	n := &sourceSection{Broker: s.Broker, Queue: name, Declare: declare, Key: s.Key}
	if o.kindBehind(s) == onKafka {
		n.Queue, n.Topics, n.Group = "", []string{name}, "longshore-bridge."+name
	}
	src, err := o.source(n)
	if err != nil {
		return nil
	}
	return src
}

// declared are the sources that make what is missing: the target, and as spare ones the parking
// place and the target's dead-letter destination.
func (o *sources) declared(s *routeSection, park string) (declare, spare []transport.Source) {
	add := func(to *[]transport.Source, at *sourceSection, name string, d *declareSection) {
		if src := o.near(at, name, d); src != nil {
			*to = append(*to, src)
		}
	}
	add(&spare, s.From, park, plainDeclare(o.kindBehind(s.From), s.From.Declare))
	if s.To.Declare == nil {
		return nil, spare
	}
	add(&declare, s.To, s.To.place(), s.To.Declare)
	if s.DeadLetters != nil {
		add(&spare, s.To, s.DeadLetters.To, plainDeclare(o.kindBehind(s.To), s.To.Declare))
	}
	return declare, spare
}

// lock is a group on the first side that is Kafka; RabbitMQ has locks of its own.
func (o *sources) lock(name string, s *routeSection) transport.Source {
	if o.kindBehind(s.From) == onRabbit || o.kindBehind(s.To) == onRabbit {
		return nil
	}
	for _, side := range []*sourceSection{s.From, s.To} {
		if o.kindBehind(side) != onKafka || side.Broker == "" {
			continue
		}
		src, err := o.source(&sourceSection{Broker: side.Broker, Topics: []string{side.place()}, Group: "longshore.bridge." + name + ".move"})
		if err == nil {
			return src
		}
	}
	return nil
}

// place is the queue or the topic of a source.
func (s *sourceSection) place() string {
	if len(s.Topics) > 0 {
		return s.Topics[0]
	}
	return s.Queue
}

// mirror makes the ends of a mirror. The tap goes away with its consumer.
func (o *sources) mirror(s *routeSection, to transport.Description) (tap, shadow transport.Source) {
	if d := s.From.Declare; o.kindBehind(s.From) == onRabbit && d != nil && len(d.Bindings) > 0 {
		tap = o.near(s.From, s.From.Queue+".bridge-tap", &declareSection{Type: "classic", Bindings: d.Bindings, AutoDelete: true})
	}
	return tap, o.near(s.To, bridge.Beside(to, "shadow"), plainDeclare(o.kindBehind(s.To), s.To.Declare))
}

// plainDeclare makes a place like another one that is declared, without its bindings.
func plainDeclare(kind string, like *declareSection) *declareSection {
	switch {
	case kind == onRabbit && (like == nil || like.Type == ""):
		return &declareSection{Type: "quorum"}
	case kind == onRabbit:
		return &declareSection{Type: like.Type}
	case kind == onKafka && like == nil:
		return &declareSection{Partitions: 1}
	case kind == onKafka:
		return &declareSection{Partitions: like.Partitions, Replicas: like.Replicas}
	}
	return &declareSection{}
}

// tryRoutes reports mistakes in the routes, each and together.
func (t *trial) tryRoutes() {
	l := t.loader
	sources := map[string]string{} // by place: the route that empties it
	for _, name := range t.made.Routes() {
		if s := l.file.Bridge[name]; s != nil && s.From != nil {
			if at := t.made.sources.placeOf(s.From); at != "" {
				sources[at] = name
			}
		}
	}
	for _, name := range t.made.Routes() {
		if s := l.file.Bridge[name]; s != nil {
			t.tryRoute(name, s, sources)
		}
	}
}

// tryRoute reports mistakes of one route. What depends on both ends is only looked at if each is
// good by itself: else the same mistake would be reported twice.
func (t *trial) tryRoute(name string, s *routeSection, sources map[string]string) {
	l, path := t.loader, joinAll("bridge", name)
	whole := t.tryEnd(path, "from", s.From)
	whole = t.tryEnd(path, "to", s.To) && whole
	t.tryIdentity(path, s)
	if d := s.DeadLetters; d != nil && (d.From == "" || d.To == "") {
		at := join(path, "dead_letters")
		l.report(l.place(at), Problem{Code: CodeMissing, Path: at, Text: "dead_letters needs from and to", Hint: "write dead_letters: {from: orders.dlq, to: orders-dlq}"})
	}
	if s.Inbox != nil && s.Inbox.Consumer == "" {
		at := join(path, "inbox")
		l.report(l.place(at), Problem{Code: CodeMissing, Path: at, Text: "inbox needs consumer", Hint: "write inbox: {consumer: NAME}, as in inbox.Config of the new consumers"})
	}
	for _, code := range s.Accept {
		if !slices.Contains(Findings(), code) {
			at := join(path, "accept")
			l.report(l.place(at), Problem{Code: CodeUnknownValue, Path: at, Text: "unknown finding " + code, Hint: "the findings are " + strings.Join(Findings(), ", ")})
		}
	}
	if s.Rate != nil && *s.Rate <= 0 {
		at := join(path, "rate")
		l.report(l.place(at), Problem{Code: CodeOutOfRange, Path: at, Text: "rate must be more than 0", Hint: "it is messages a second; leave it out for no limit"})
	}
	if !whole || l.brokenBelow(path) {
		return
	}
	from, to := t.made.sources.placeOf(s.From), t.made.sources.placeOf(s.To)
	at := join(path, "to")
	switch other := sources[to]; {
	case from == to:
		l.report(l.place(at), Problem{Code: longshore.CodeConfig, Path: at, Text: "route `" + name + "` leads to itself", Hint: "name another queue, topic or broker"})
	case other != "":
		l.report(l.place(at), Problem{Code: longshore.CodeConfig, Path: at, Text: "the target of route `" + name + "` is the source of route `" + other + "`", Hint: "the way back is longshore bridge rollback; a chain needs a file for each route"})
	default:
		t.tryBridge(path, name, s)
	}
}

// tryBridge has the bridge look at the route, without I/O.
func (t *trial) tryBridge(path, name string, s *routeSection) {
	r, err := t.made.sources.route(name, s)
	if err == nil {
		cfg := r.Container
		cfg.Logger = zap.NewNop()
		_, err = bridge.New(bridge.Config{Name: name, From: r.From, To: r.To, Identity: r.Identity, Park: r.Park, Rate: r.Rate, Container: cfg})
	}
	if at := join(path, "dead_letters"); err == nil && s.DeadLetters != nil && (r.LettersFrom == nil || r.LettersTo == nil) {
		t.loader.report(t.loader.place(at), Problem{Code: longshore.CodeConfig, Path: at, Text: "the dead letters of route `" + name + "` would stay: their place is found by the name of a broker",
			Hint: "write broker: NAME instead of url in from and to"})
	}
	t.loader.blame(path, path, t.unlessTold(s.From.Broker, t.unlessTold(s.To.Broker, err)))
}

// tryEnd looks at one end of a route.
func (t *trial) tryEnd(path, key string, s *sourceSection) bool {
	l, at := t.loader, join(path, key)
	if s == nil {
		if !l.broken[at] && !l.broken[path] {
			l.report(l.spotOf(l.at[path].key), Problem{Code: CodeMissing, Path: at, Text: "route `" + last(path) + "` has no " + key, Hint: "add " + key + ": {broker: NAME, queue: NAME}"})
		}
		return false
	}
	complete := l.needs(at, s)
	src, err := t.made.sources.source(s)
	if complete {
		l.blame(at, at, t.checked(s, src, err))
	}
	if s.Broadcast || len(s.Queues) > 0 || len(s.Topics) > 1 || s.Pattern {
		l.report(l.place(at), Problem{Code: longshore.CodeConfig, Path: at, Text: key + " must be one queue or one topic", Hint: "write a route for each"})
		return false
	}
	return complete && src != nil && err == nil && !l.brokenBelow(at)
}

// tryIdentity reports an id that is no rule.
func (t *trial) tryIdentity(path string, s *routeSection) {
	if header, ok := strings.CutPrefix(s.ID, headerPrefix); s.ID == "" || s.ID == "message-id" || s.ID == "body" || ok && header != "" {
		return
	}
	at := join(path, "id")
	t.loader.report(t.loader.place(at), Problem{Code: CodeUnknownValue, Path: at, Text: "id `" + s.ID + "` is not known", Hint: "write message-id, header:NAME or body"})
}

// placeOf names the place of a source, to compare it with others.
func (o *sources) placeOf(s *sourceSection) string {
	src, err := o.source(s)
	if err != nil || src == nil {
		return ""
	}
	d := describe(src)
	return strings.Join([]string{d.Transport, d.Address, d.Namespace, d.Name}, sep)
}

// describe is what a source says of itself; empty where it says nothing.
func describe(s transport.Source) transport.Description {
	if d, ok := s.(transport.Describer); ok {
		return d.Describe()
	}
	return transport.Description{}
}
