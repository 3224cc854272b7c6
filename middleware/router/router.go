package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// Policy says what becomes of messages that no route takes.
type Policy uint8

const (
	// Reject sends them to the dead-letter destination. The zero value.
	Reject Policy = iota
	// Discard acknowledges them: for a consumer that wants only some of a topic.
	Discard
	// Retry lets them fail as a handler's error does: attempts, backoff, dead letter.
	// For the time in which old and new instances run alongside each other.
	Retry
	// Release gives them back uncounted after Config.ReleaseDelay: for a queue that
	// other consumers read too.
	Release
)

// String is the policy's name in logs.
func (p Policy) String() string {
	if names := [...]string{"reject", "discard", "retry", "release"}; int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// Config of a [Router]. The zero value rejects what no route takes.
type Config struct {
	// Unmatched is what becomes of messages that no route takes.
	Unmatched Policy
	// Fallback takes them instead; then Unmatched must be zero.
	Fallback longshore.Handler
	// TypeHeaders are headers that tell the type of a message that has none, the first
	// one that is there: "__TypeId__" for what Spring's converters write.
	TypeHeaders []string
	// ReleaseDelay is for Release; zero: 30 s.
	ReleaseDelay time.Duration
	// Logger gets a line "no route" for each type that no route takes, at once and then
	// at most once a minute with a count. nil: none; the container logs and counts the
	// verdicts anyway.
	Logger *zap.Logger
}

const defaultReleaseDelay = 30 * time.Second

// Router is a handler. It is safe for concurrent use and can serve several
// containers.
type Router struct {
	cfg    Config
	types  map[string]int // places of routes by type
	others []int          // places of those by anything else, ascending
	routes []Route
	log    *missed
}

// New checks everything; the error joins all mistakes.
func New(cfg Config, routes ...Route) (*Router, error) {
	r := &Router{cfg: cfg, types: map[string]int{}, routes: routes}
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, &longshore.Error{Code: longshore.CodeConfig, Op: "make a router", Err: fmt.Errorf(format, args...)})
	}
	if len(routes) == 0 && cfg.Fallback == nil {
		bad("no route")
	}
	for i, route := range routes {
		if route.problem != nil {
			bad("the route by %s: %w", route.name, route.problem)
		}
		if route.handler == nil {
			bad("the route by %s has no handler", route.name)
		}
		if route.typ == "" {
			r.others = append(r.others, i)
			continue
		}
		if _, twice := r.types[route.typ]; twice {
			bad("two routes take %s; the second would never run", route.name)
		}
		r.types[route.typ] = i
	}
	if cfg.Unmatched > Release {
		bad("Unmatched is %d: must be Reject, Discard, Retry or Release", cfg.Unmatched)
	}
	if cfg.Fallback != nil && cfg.Unmatched != Reject {
		bad("Unmatched is %v, but Fallback takes everything", cfg.Unmatched)
	}
	if cfg.ReleaseDelay < 0 {
		bad("ReleaseDelay is negative")
	}
	if cfg.ReleaseDelay == 0 {
		r.cfg.ReleaseDelay = defaultReleaseDelay
	}
	if cfg.Logger != nil {
		r.log = &missed{log: logs.Of(cfg.Logger), policy: cfg.Unmatched, types: map[string]*miss{}}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// Handle gives the message to its handler.
func (r *Router) Handle(ctx context.Context, d *longshore.Delivery) error {
	typ := r.typeOf(d)
	if h := r.find(typ, d); h != nil {
		return h.Handle(ctx, d)
	}
	if r.cfg.Fallback != nil {
		return r.cfg.Fallback.Handle(ctx, d)
	}
	if r.log != nil {
		r.log.note(typ, d, time.Now())
	}
	err := &longshore.Error{Code: longshore.CodeNoHandler, Op: fmt.Sprintf("handle %q message %.64q", d.Origin.Source(), d.Received().ID), Source: d.Origin.Source(),
		Err: fmt.Errorf("no route takes type %.64q, topic %.64q, routing key %.64q", typ, d.Origin.Topic, d.Origin.RoutingKey), Hint: "add a route, or set Unmatched or Fallback of the router"}
	switch r.cfg.Unmatched {
	case Discard:
		return longshore.Discard(err)
	case Retry:
		return err
	case Release:
		return longshore.Release(err, r.cfg.ReleaseDelay)
	default:
		return longshore.Reject(err)
	}
}

// find returns the handler of the first route that matches; nil: none does.
func (r *Router) find(typ string, d *longshore.Delivery) longshore.Handler {
	at, ok := r.types[typ]
	if !ok {
		at = len(r.routes)
	}
	for _, i := range r.others {
		if i > at {
			break
		}
		if r.routes[i].match(d) {
			return r.routes[i].handler
		}
	}
	if ok {
		return r.routes[at].handler
	}
	return nil
}

func (r *Router) typeOf(d *longshore.Delivery) string {
	if d.Type != "" {
		return d.Type
	}
	for _, name := range r.cfg.TypeHeaders {
		if typ := d.Headers.String(name); typ != "" {
			return typ
		}
	}
	return ""
}
