package container

import (
	"fmt"
	"strings"

	"github.com/longshore-go/longshore"
)

// middleware refuses what cannot work and warns of orders that are known to be
// wrong.
func (s *settings) middleware(p *problems, cfg Config, batch bool) {
	for i, m := range cfg.Middleware {
		if m == nil {
			p.Bad(fmt.Sprintf("Middleware[%d]", i), "leave it out", "is nil")
			continue
		}
		if _, ok := m.(longshore.BatchWrapper); batch && !ok {
			p.Bad(fmt.Sprintf("Middleware[%d]", i), "give it a WrapBatch method, or leave it out", "(%s) takes single deliveries only", nameOf(m))
		}
	}
	s.warnings = wrongOrders(cfg.Middleware)
	for _, text := range misplaced(places(cfg.Middleware), losing) {
		p.Bad("Middleware", "", "%s", text)
	}
}

// places are where middlewares are, by their names.
func places(mws []longshore.Middleware) map[string]int {
	at := map[string]int{}
	for i, m := range mws {
		if m != nil {
			at[nameOf(m)] = i
		}
	}
	return at
}

// nameOf names a middleware for people.
func nameOf(m longshore.Middleware) string {
	if n, ok := m.(longshore.Named); ok {
		return n.Name()
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", m), "*")
}

// Validate returns warnings about a configuration that would work but is known
// to be a mistake: middlewares in an order that defeats one of them. New logs
// them.
func Validate(cfg Config) []string { return wrongOrders(cfg.Middleware) }

// order is a pair of names of which the first must not be inside the second.
type order struct {
	outer, inner, why string // the two middlewares, and what goes wrong in the other order
}

// losing are the orders that would lose messages: more than a warning.
//
//nolint:gochecknoglobals // a constant table
var losing = []order{
	{"dedupe", "spring-batches", sameID},
	{"mutex", "spring-batches", sameID},
}

const sameID = "the parts of a batch share one id, so all but the first would be taken for copies and skipped"

// wrong are the orders that are warned of.
//
//nolint:gochecknoglobals // a constant table
var wrong = []order{
	{"recover", "mutex", "a panic caught inside the transaction would be seen too late to roll it back"},
	{"trace", "mutex", "the span would end before the commit"},
	{"metrics", "mutex", "a failed commit would be counted as success"},
	{"log", "mutex", "a failed commit would be logged as success"},
	{"decode", "mutex", "a body that cannot be decoded would take the lock first"},
	{"breaker", "mutex", "an open breaker would still take locks"},
	{"mutex", "timeout", "a timeout outside the transaction leaves the outcome of the commit unknown"},
	{"dedupe", "mutex", "what was done a moment ago would cost a transaction"},
	{"throttle", "mutex", "a transaction would be open while it waits for a permit"},
	{"decode", "shadow", "the second handler would get the encoded body"},
	{"decode", "spring-batches", "a batch is packed as a whole"},
	{"trace", "log", "the line would not carry the trace"},
}

func wrongOrders(mws []longshore.Middleware) []string {
	var warnings []string
	seen := map[string]bool{}
	for _, m := range mws {
		if m == nil {
			continue
		}
		name := nameOf(m)
		if seen[name] && knownName(name) {
			warnings = append(warnings, fmt.Sprintf("middleware %q is there twice", name))
		}
		seen[name] = true
	}
	return append(warnings, misplaced(places(mws), wrong)...)
}

// misplaced says which rules are broken; at is where each middleware is.
func misplaced(at map[string]int, rules []order) (texts []string) {
	for _, r := range rules {
		outer, ok1 := at[r.outer]
		inner, ok2 := at[r.inner]
		if ok1 && ok2 && outer > inner {
			texts = append(texts, fmt.Sprintf("middleware %q is inside %q: %s; put %q first", r.outer, r.inner, r.why, r.outer))
		}
	}
	return texts
}

func knownName(name string) bool {
	for _, w := range wrong {
		if name == w.outer || name == w.inner {
			return true
		}
	}
	return false
}
