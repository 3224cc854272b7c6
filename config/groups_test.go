package config

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/urls"
)

const shop = `
defaults: {workers: {max: 4}, drain_timeout: 5s}
containers:
  shop:
    sources:
      orders: mem://orders
      returns: {broker: m, queue: goods-back}
    workers: {min: 2}
    throttle: {permits: 3}
    redelivery: {max_attempts: 1}
    dead_letter: {to: "{source}.dead"}
    two_step_stop: true
  audit: {source: mem://audit}
brokers: {m: {url: "mem://"}}
`

// One section with several sources is a container for each: with a name, dead letters and a
// pause of its own, one handler and one throttle for all, and a stop in two steps.
func TestSeveralSourcesInOneContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c := load(t, Options{Environ: []string{"LONGSHORE_CONTAINERS_SHOP_SOURCES_ORDERS=mem://orders-2", "LONGSHORE_CONTAINERS_SHOP_SOURCES_RETURNS_QUEUE=returns-2"}, Memory: b}, shop)
		if got := strings.Join(c.Names(), " "); got != "shop/orders shop/returns audit" {
			t.Errorf("names %s", got)
		}
		slow := make(chan struct{})
		h := longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
			switch string(d.Body) {
			case "fail":
				return errors.New("no")
			case "slow":
				<-slow
			}
			return nil
		})
		var made []*container.ListenerContainer
		parts, err := c.Components(Handlers{"shop": h, "audit": h}, Code{Logger: zap.NewNop(), Adjust: func(name string, cfg *container.Config) {
			if name == "shop/returns" {
				cfg.Workers.Min = 1
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		group := parts[0].(*container.Group) //nolint:errcheck // it is one
		made = group.Containers()
		if len(parts) != 3 || parts[1].(lifecycle.Phaser).Phase() != lifecycle.PhaseRelays { //nolint:errcheck // it is one
			t.Errorf("%v", parts)
		}
		m, err := lifecycle.New(c.Lifecycle(), parts...)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := group.PauseSource("returns"); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"shop/orders", "shop/returns"} {
			send(t, c, name, "fail")
		}
		send(t, c, "shop/orders", "slow")
		<-time.After(time.Second)
		for place, ready := range map[string]int{"orders.dead": 1, "returns.dead": 0, "returns-2": 1, "goods-back": 0} {
			if q := b.Inspect(place); q.Ready+q.Unsettled != ready {
				t.Errorf("%s has %+v, want %d", place, q, ready)
			}
		}
		orders, returns := made[0].Stats(), made[1].Stats()
		if orders.Workers != 2 || returns.Workers != 1 || orders.State == returns.State {
			t.Errorf("%+v %+v", orders, returns)
		}
		if dead, err := c.DeadLetters("shop/returns", urls.Options{}); err != nil || !c.OwnDeadLetters("shop/returns") || dead.Source == nil {
			t.Errorf("%+v %v", dead, err)
		}
		begun := time.Now()
		time.AfterFunc(7*time.Second, func() { close(slow) })
		_ = m.Stop(context.Background())
		if took := time.Since(begun); took != 7*time.Second || b.Inspect("orders-2").Acked != 2 {
			t.Errorf("the stop took %v: %+v", took, b.Inspect("orders-2"))
		}
	})
}

// Mistakes in a container with several sources are reported at once, each at its line.
func TestMistakesInSeveralSources(t *testing.T) {
	ps := problems(t, nowhere(), `brokers:
  r: {url: "amqp://localhost"}
  k: {url: "kafka://k1:9092"}
containers:
  a:
    source: mem://a
    sources: {b: mem://b}
  c:
    sources:
      one: {broker: r, queue: one, exclusive: true,
        single_active: true}
      two: {broker: r}
      three:
      four: {broker: x, queue: four}
      five: {broker: k, topics: [five], group: g}
      six: mem://six?que=1
    workers: {min: 5, max: 2}
    two_step_stop: true
    drain_timeout: none
    dead_letter: {policy: native}
  d:
    source: mem://d
    two_step_stop: true
    dead_letter: {to: "{source}.dead"}
  e: {sources: [mem://e]}
`)
	got := lines(ps)
	for _, want := range []string{
		"longshore.yaml:7:5 error[out-of-range] sources does not go with source",
		"longshore.yaml:10:36 error[out-of-range] exclusive does not go with single_active",
		"longshore.yaml:12:12 error[missing] source has no queue",
		"longshore.yaml:13:7 error[missing] source `three` is empty",
		"longshore.yaml:14:22 error[unknown-value] unknown broker `x`",
		"longshore.yaml:16:22 error[unknown-key]",
		"longshore.yaml:17:15 error[out-of-range]",
		"longshore.yaml:18:5 error[out-of-range] two_step_stop does not go with a drain_timeout of 0",
		"longshore.yaml:20:19 error[out-of-range] dead_letter.policy native does not go with kafka",
		"longshore.yaml:23:5 error[missing] two_step_stop is set without sources",
		"longshore.yaml:24:23 error[bad-value] dead_letter.to has {source}",
		"longshore.yaml:25:16 error[bad-value] sources is a list, not a mapping of names",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("not there: %s", want)
		}
	}
	if t.Failed() || len(ps) != 12 {
		t.Errorf("%d problems:\n%s", len(ps), got)
	}
}

// The admin API has each source under its name; what is asked of it concerns that one alone.
func TestEachSourceInTheAdminAPI(t *testing.T) {
	const token = "0123456789abcdef0"
	c := load(t, Options{Environ: []string{"T=" + token}, Memory: memory.New(memory.Config{})}, shop+`
admin: {listen: "127.0.0.1:0", operators: {anna: env:T}}`)
	h := longshore.HandlerFunc(nothing)
	parts, err := c.Components(Handlers{"shop": h, "audit": h}, Code{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	m, err := lifecycle.New(c.Lifecycle(), parts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	a := parts[len(parts)-1].(interface{ Addr() string }) //nolint:errcheck // it is one
	call := func(method, path string) []byte {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.Addr()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		tr := &http.Transport{DisableKeepAlives: true}
		resp, err := (&http.Client{Transport: tr}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode > 299 {
			t.Fatalf("%s %s: %s %s %v", method, path, resp.Status, body, err)
		}
		return body
	}
	call("POST", "/api/containers/shop%2Freturns/pause")
	var list struct{ Containers []admin.Container }
	if err := json.Unmarshal(call("GET", "/api/containers"), &list); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, one := range list.Containers {
		seen = append(seen, one.Name)
		if (one.Paused != nil) != (one.Name == "shop/returns") {
			t.Errorf("%s: paused %v", one.Name, one.Paused)
		}
	}
	if !slices.Equal(seen, []string{"shop/orders", "shop/returns", "audit"}) {
		t.Errorf("%v", seen)
	}
}

// A section with several sources is named by its sources, shown like others, and counts both
// steps of its stop.
func TestSourcesByTheirNames(t *testing.T) {
	c := load(t, nowhere(), shop)
	for name, hint := range map[string]string{"shop": "shop/orders, shop/returns", "shop/order": `did you mean "shop/orders"?`} {
		var e *longshore.Error
		if _, err := c.Source(name); !errors.As(err, &e) || e.Code != CodeMissing || !strings.Contains(e.Hint, hint) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Group("audit", longshore.HandlerFunc(nothing), Code{}); !errors.Is(err, CodeMissing) {
		t.Errorf("a container with one source: %v", err)
	}
	if _, err := c.Group("none", longshore.HandlerFunc(nothing), Code{}); !errors.Is(err, CodeMissing) {
		t.Errorf("no container: %v", err)
	}
	if c.slowest != 12*time.Second {
		t.Errorf("the longest stop is %v", c.slowest)
	}
	shown := map[string]string{}
	for _, v := range c.Show(false) {
		shown[strings.Join(v.Path, ".")] = v.Value
	}
	if shown["containers.shop.sources.orders"] != "mem://orders" || shown["containers.shop.sources.returns.queue"] != "goods-back" || shown["containers.shop.two_step_stop"] != "true" {
		t.Errorf("%v", shown)
	}
}

// Names with slashes may be those of a group's sources: one name is one container.
func TestNamesOfSourcesAreTheirOwn(t *testing.T) {
	got := lines(problems(t, nowhere(), `containers:
  a: {sources: {b/c: mem://one}}
  a/b: {sources: {c: mem://two}}
  x: {sources: {y: mem://three}}
  x/y: {source: mem://four}
`))
	for _, want := range []string{
		"longshore.yaml:3:3 error[duplicate-key] container `a/b/c` of `a/b` is called like one of `a`",
		"longshore.yaml:5:3 error[duplicate-key] container `x/y` of `x/y` is called like one of `x`",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("not there: %s", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}
