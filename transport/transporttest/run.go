package transporttest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-go/longshore/transport"
)

// check is one demand of the contract.
type check struct {
	name  string
	needs func(h *Harness) string // the field that is missing, "" if none is
	run   func(e *env)
	alone bool // looks at the whole process
}

// Checks returns the names of all checks in the order in which [Run] makes them.
func Checks() []string {
	var names []string
	for _, c := range allChecks() {
		names = append(names, c.name)
	}
	return names
}

func allChecks() []check {
	var all []check
	for _, part := range [][]check{receiveChecks(), settleChecks(), endChecks(), lossChecks(),
		flushChecks(), publishChecks(), contentChecks(), openChecks(), optionalChecks(), reportChecks()} {
		all = append(all, part...)
	}
	return all
}

// Run makes every check as a subtest of t.
func Run(t *testing.T, h Harness) {
	t.Helper()
	full := h.withDefaults()
	if h.Source == nil {
		t.Fatal("transporttest: Harness.Source is not set")
	}
	var mu sync.Mutex
	var open []string
	t.Cleanup(func() { // when parallel checks have ended too
		if len(open) > 0 {
			t.Logf("transporttest: not checked:\n  %s", strings.Join(open, "\n  "))
		}
	})
	for _, c := range allChecks() {
		t.Run(c.name, func(t *testing.T) {
			if full.Parallel && !c.alone {
				t.Parallel()
			}
			if reason := c.execute(t, full); reason != "" {
				mu.Lock()
				open = append(open, c.name+": "+reason)
				mu.Unlock()
				t.Skip("not checked: " + reason)
			}
		})
	}
}

// execute makes the check and returns why it was not made, "" if it was.
func (c *check) execute(t testing.TB, h *Harness) (reason string) {
	if c.needs != nil {
		if field := c.needs(h); field != "" {
			return "needs Harness." + field
		}
	}
	e := &env{TB: t, h: h}
	c.run(e)
	return e.skipped
}

// skip notes that the check does not apply; the caller returns.
func (e *env) skip(format string, args ...any) {
	e.skipped = fmt.Sprintf(format, args...)
}

// without notes that a capability is missing.
func (e *env) without(capability string) { e.skip("Capabilities.%s", capability) }

// needs makes a function that returns the first of the fields that is not set.
func needs(fields ...string) func(h *Harness) string {
	return func(h *Harness) string {
		set := map[string]bool{
			"Windowed": h.Windowed != nil, "Leased": h.Leased != nil, "Missing": h.Missing != nil,
			"BadAuth": h.BadAuth != nil, "Drop": h.Drop != nil, "TakeBack": h.TakeBack != nil, "Duplicate": h.Duplicate != nil,
			"Latency": h.Latency != nil, "Stall": h.Stall != nil, "FailSettle": h.FailSettle != nil,
			"FailPublish": h.FailPublish != nil, "Depth": h.Depth != nil, "DeadLettered": h.DeadLettered != nil,
			"Operations": len(h.Operations) > 0,
		}
		for _, f := range fields {
			if !set[f] {
				return f
			}
		}
		return ""
	}
}

// capabilities is what the open consumer says, or else the source.
func capabilities(src transport.Source, c transport.Consumer) transport.Capabilities {
	if r, ok := c.(transport.CapabilityReporter); ok {
		return r.Capabilities()
	}
	return src.Capabilities()
}
