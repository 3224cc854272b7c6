package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
)

// bench is two programs, what they work on, and the server that looks at them.
type bench struct {
	t     *testing.T
	site  *site
	progs [2]*program
	pub   publishers
	prom  *server
	exprs map[string]string
	seen  map[string]bool
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s := newSite(t)
	b := &bench{t: t, site: s, exprs: expressions(t), seen: map[string]bool{}}
	b.progs = [2]*program{newProgram(t, s, true), newProgram(t, s, false)}
	b.pub = s.publishers(t, b.progs[0])
	b.prom = startServer(t, b.progs[0].addr, b.progs[1].addr)
	return b
}

// see waits until the panels show what they should.
func (b *bench) see(when string, panels map[string]want) {
	b.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(panels)) {
		expr, ok := b.exprs[name]
		if !ok {
			b.t.Errorf("the dashboard has no %q", name)
			continue
		}
		b.seen[name] = true
		b.shows(when+": "+name, expr, panels[name])
	}
}

func (b *bench) shows(what, expr string, w want) {
	b.t.Helper()
	var last []sample
	eventually(b.t, what, func() error {
		all, err := b.prom.query(b.t, expr)
		if err != nil {
			return err
		}
		last = all
		return w(all)
	})
	b.t.Logf("%s: %v", what, last)
}

// Every expression of the dashboard shows what happens, when it happens.
func TestTheDashboardShowsWhatHappens(t *testing.T) {
	b := newBench(t)
	b.traffic()
	b.mishaps()
	b.held()
	b.stopped()
	for name := range b.exprs {
		if !b.seen[name] {
			t.Errorf("nothing was asked of %q", name)
		}
	}
	for _, v := range readDashboard(t).Templating.List {
		if v.Type != "query" {
			continue
		}
		label, selector, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")"), ", ")
		if i := strings.LastIndex(v.Definition, ", "); ok && i > 0 {
			selector, label = strings.TrimPrefix(v.Definition[:i], "label_values("), strings.TrimSuffix(v.Definition[i+2:], ")")
		}
		if got := b.prom.values(t, label, asGrafana(selector)); len(got.Data) < 2 {
			t.Errorf("the variable %s has %q", v.Name, got.Data)
		}
	}
}

func (b *bench) traffic() {
	stop := traffic(b.t, b.pub)
	defer stop()
	must(b.t, send(b.t.Context(), b.pub.invoices, "invoices", 1, "head"))
	any, shares := above(-1), from(0, 1)
	b.see("traffic", map[string]want{
		"Not ready A":                    both(series(1), some("", is(0))),
		"Not live A":                     both(series(1), some("", is(0))),
		"State A":                        both(series(5), some("state=running", is(1)), some("longshore_container=parcels", is(1))),
		"Consumer capacity A":            both(series(5), some("", from(0.5, 1))),
		"Backlog A":                      both(series(3), some("", from(0, 100))),
		"Oldest delivery in hand A":      both(series(5), some("", from(0, 5))),
		"Verdicts A":                     both(some("messaging_destination_name=orders verdict=ack", from(20, 60)), some("messaging_destination_name=orders verdict=retry", above(1)), some("messaging_destination_name=orders verdict=reject", above(1)), some("messaging_destination_name=invoices verdict=ack", from(10, 30))),
		"Handler time A":                 both(some("messaging_destination_name=invoices", from(0.001, 1)), some("messaging_destination_name=orders", from(0, 1))),
		"Handler time B":                 some("messaging_destination_name=invoices", from(0.001, 5)),
		"Age when the handler began A":   some("messaging_destination_name=orders", from(0, 10)),
		"Age when the handler began B":   some("messaging_destination_name=orders", from(0.01, 60)),
		"Attempts after the first A":     some("messaging_destination_name=orders attempt=2", from(2, 8)),
		"Dead letters A":                 both(some("longshore_container=orders reason=handler", from(2, 8)), some("longshore_container=invoices reason=handler", from(1, 4))),
		"Consumed A":                     both(some("messaging_destination_name=orders", from(20, 70)), some("messaging_destination_name=invoices", from(10, 30))),
		"Workers A":                      both(series(3), some("longshore_container=orders", from(2, 20)), some("longshore_container=parcels", from(1, 10))),
		"Workers B":                      both(series(3), some("longshore_container=orders", from(2, 20))),
		"Workers C":                      both(series(3), some("longshore_container=orders", is(20)), some("longshore_container=parcels", is(10))),
		"Busy share A":                   both(series(5), some("", shares)),
		"In hand A":                      both(series(3), some("", from(0, 100))),
		"In hand B":                      both(series(3), some("longshore_container=invoices", above(0))),
		"Lanes A":                        both(series(5), some("", any)),
		"Throttle A":                     both(series(2), some("longshore_container=orders", is(50))),
		"Throttle B":                     both(series(1), some("longshore_container=parcels", is(1000))),
		"Accepting work A":               both(series(5), some("", is(1))),
		"Stuck handlers A":               both(series(5), some("", is(0))),
		"Time since the last delivery A": both(some("longshore_container=orders", from(0, 5)), some("longshore_container=invoices", from(0, 5))),
	})
	b.prom.consistent(b)
}

// consistent compares what was published with what was consumed.
func (s *server) consistent(b *bench) {
	b.t.Helper()
	b.shows("sent and confirmed", `sum by (messaging_destination_name) (rate(messaging_client_sent_messages_total{error_type=""}[5s]))`, some("messaging_destination_name=orders", from(25, 55)))
}

func (b *bench) mishaps() {
	p := b.progs[0]
	must(b.t, send(b.t.Context(), b.pub.parcels, "parcels", 1, "good"))
	b.shows("one parcel", `longshore_delivery_last_seconds{longshore_container="parcels"}`, some("", above(0)))

	b.site.memory.FailSettle(1, fmt.Errorf("refused"))
	must(b.t, send(b.t.Context(), b.pub.parcels, "parcels", 1, "good"))
	b.see("a settlement failed", map[string]want{"Failed settlements A": some("longshore_container=parcels code=settle", above(0.5))})

	b.site.memory.Drop("parcels")
	b.see("a subscription was lost", map[string]want{"Reopened subscriptions A": some("longshore_container=parcels code=conn-lost", above(0.5))})

	must(b.t, send(b.t.Context(), b.pub.parcels, "parcels", 1, "stuck"))
	b.see("a handler is stuck", map[string]want{
		"Stuck handlers A":          some("longshore_container=parcels", is(1)),
		"Oldest delivery in hand A": some("longshore_container=parcels", above(2)),
	})
	close(p.free)
	b.see("no longer", map[string]want{"Stuck handlers A": some("longshore_container=parcels", is(0))})
	b.busy()
}

// busy has more work than one worker does.
func (b *bench) busy() {
	b.site.orders.set(false, 100e6)
	must(b.t, send(b.t.Context(), b.pub.orders, "orders", 600, "good"))
	b.see("much work", map[string]want{
		"Scale decisions A": some("longshore_container=orders direction=up", above(0.5)),
		"Busy share A":      some("", from(0, 1)),
	})
	b.site.orders.set(false, 0)
	b.see("done", map[string]want{"Backlog A": some("longshore_container=orders", is(0)), "In hand A": some("longshore_container=orders", is(0))})
	b.see("less work", map[string]want{"Scale decisions A": some("longshore_container=orders direction=down", above(0.5))})
}

func (b *bench) held() {
	b.site.orders.set(true, 0)
	must(b.t, send(b.t.Context(), b.pub.orders, "orders", 500, "good"))
	b.see("the breaker is open", map[string]want{
		"Not ready A":         some("", is(2)),
		"Accepting work A":    some("longshore_container=orders", is(0)),
		"Consumer capacity A": some("longshore_container=orders", is(0)),
	})
	b.site.orders.set(false, 0)
	b.see("closed again", map[string]want{"Accepting work A": some("", is(1)), "Backlog A": some("longshore_container=orders", is(0))})
}

// stopped ends one, with work in hand, and starts it again where it cannot.
func (b *bench) stopped() {
	c := b.progs[0].parcel
	must(b.t, send(b.t.Context(), b.pub.parcels, "parcels", 1, "slow"))
	b.see("one is at work", map[string]want{"In hand A": some("longshore_container=parcels", is(1))})
	must(b.t, c.Stop(b.t.Context()))
	b.see("one has stopped", map[string]want{
		"State A":  some("longshore_container=parcels state=stopped", is(1)),
		"Drains A": both(series(1), some("longshore_container=parcels outcome=completed", above(0.5))),
		"Drains B": some("longshore_container=parcels", from(0.1, 10)),
	})
	b.see("which is no trouble", map[string]want{"Not live A": some("", is(0)), "Not ready A": some("", is(0))})
	b.site.memory.FailOpen("parcels", 1, &longshore.Error{Code: longshore.CodeForbidden})
	if err := c.Start(b.t.Context()); err == nil {
		b.t.Error("it has started")
	}
	b.see("one has ended", map[string]want{"Not live A": some("", is(1)), "Not ready A": some("", is(0))})
}
