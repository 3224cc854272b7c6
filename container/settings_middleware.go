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
			p.addf(fmt.Sprintf("Middleware[%d]", i), "is nil")
			continue
		}
		if _, ok := m.(longshore.BatchWrapper); batch && !ok {
			p.addf(fmt.Sprintf("Middleware[%d]", i), "(%s) knows only single deliveries: it has no WrapBatch", nameOf(m))
		}
	}
	s.warnings = wrongOrders(cfg.Middleware)
	at := places(cfg.Middleware)
	for _, inner := range []string{"dedupe", "mutex"} {
		i, ok1 := at[inner]
		b, ok2 := at["spring-batches"]
		if ok1 && ok2 && b < i { // it would lose them, so it is more than a warning
			p.addf("Middleware", "has %q inside of \"spring-batches\": the parts of a batch share one id, so all but the first would be taken for copies and skipped; put %q first", inner, inner)
		}
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

// wrong lists pairs of names of which the first must not be inside the second.
//
//nolint:gochecknoglobals // a constant table
var wrong = []struct{ outer, inner, why string }{
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
	at := map[string]int{}
	var warnings []string
	for i, m := range mws {
		if m == nil {
			continue
		}
		name := nameOf(m)
		if _, twice := at[name]; twice && knownName(name) {
			warnings = append(warnings, fmt.Sprintf("middleware %q is there twice", name))
		}
		at[name] = i
	}
	for _, w := range wrong {
		outer, ok1 := at[w.outer]
		inner, ok2 := at[w.inner]
		if ok1 && ok2 && outer > inner {
			warnings = append(warnings, fmt.Sprintf("middleware %q is inside %q: %s; put %q first", w.outer, w.inner, w.why, w.outer))
		}
	}
	return warnings
}

func knownName(name string) bool {
	for _, w := range wrong {
		if name == w.outer || name == w.inner {
			return true
		}
	}
	return false
}
