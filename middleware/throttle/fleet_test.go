package throttle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

const secret = "a secret of more than 16 bytes"

func keys(ids ...string) []throttle.Key {
	var ks []throttle.Key
	for _, id := range ids {
		ks = append(ks, throttle.Key{ID: id, Secret: transport.Static(secret + id)})
	}
	return ks
}

// events collects what a fleet tells.
type events struct {
	mu  sync.Mutex
	all []throttle.FleetEvent
}

func (e *events) add(x throttle.FleetEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, x)
}

func (e *events) kinds(of throttle.FleetEventKind) (refused []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.all {
		if x.Kind == of {
			refused = append(refused, x.Refused)
		}
	}
	return refused
}

// instance is one process of a service.
type instance struct {
	*throttle.Fleet
	limit  *throttle.Limiter
	events events
}

func join(t testing.TB, src transport.Source, name string, cfg throttle.FleetConfig) *instance {
	t.Helper()
	in := &instance{limit: throttle.NewPermits(20)}
	cfg.Instance, cfg.OnEvent = name, in.events.add
	f, err := throttle.NewFleet(src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	in.Fleet = f
	f.Add("orders", in.limit)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Stop(context.Background()) })
	return in
}

func (in *instance) permits() int {
	n, _ := in.limit.Limits()
	return n
}

func issue(t testing.TB, in *instance, d throttle.Directive) throttle.Issued {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	res, err := in.Issue(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func ptr[T any](v T) *T { return &v }

// put publishes a raw control message.
func put(t testing.TB, b *memory.Broker, body string) {
	t.Helper()
	publish(t, b, "control", &longshore.Message{Key: []byte("k" + body), Body: []byte(body)})
}

// A change reaches all three instances, who says so is counted, and who comes later
// obeys too, on a topic that keeps and on one that does not.
func TestFleetObeys(t *testing.T) {
	for _, retain := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			src := b.Broadcast("control", memory.BroadcastConfig{Retain: retain})
			cfg := throttle.FleetConfig{Scope: "shop", Keys: keys("k1")}
			a, c, d := join(t, src, "a", cfg), join(t, src, "b", cfg), join(t, src, "c", cfg)
			res := issue(t, a, throttle.Directive{Permits: ptr(5), Issuer: "anna", Reason: "ledger is slow"})
			if fmt.Sprint(res.Obeyed) != "[a b c]" || len(res.Missing) != 0 || res.Took > time.Second {
				t.Errorf("%+v", res)
			}
			for _, in := range []*instance{a, c, d} {
				if st := in.limit.State(); st.Permits != 5 || st.Fleet.By != "anna" || st.Configured.Permits != 20 {
					t.Errorf("%s: %+v", in.Instance(), st)
				}
			}
			late := join(t, src, "late", cfg)
			if late.permits() != 5 {
				t.Errorf("retain %v: who came later has %d permits after Start", retain, late.permits())
			}
			res = issue(t, c, throttle.Directive{Target: throttle.Target{Instance: "late"}, Rate: ptr(7.5)})
			if fmt.Sprint(res.Obeyed) != "[late]" {
				t.Errorf("%+v", res)
			}
			if _, rate := late.limit.Limits(); rate != 7.5 || late.permits() != 5 {
				t.Errorf("field by field: %d permits, rate %v", late.permits(), rate)
			}
			issue(t, d, throttle.Directive{Unset: true})
			wait(10 * time.Second)
			if a.permits() != 20 || late.permits() != 20 {
				t.Errorf("taken back: %d and %d permits", a.permits(), late.permits())
			}
			for _, in := range []*instance{a, c, d, late} {
				if n := in.events.kinds(throttle.FleetRefused); len(n) != 0 {
					t.Errorf("%s refused %v", in.Instance(), n)
				}
				if err := in.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Whatever is wrong with a message is told, and what was in force stays.
func TestBadControlMessagesAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		src := b.Broadcast("control", memory.BroadcastConfig{})
		in := join(t, src, "a", throttle.FleetConfig{Keys: keys("k1", "k0"), MaxPermits: 100})
		issue(t, in, throttle.Directive{Permits: ptr(5)})
		sealed := func(key throttle.Key, d throttle.Directive) string {
			raw, err := throttle.Seal(t.Context(), "default", key, d)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		good := throttle.Directive{Permits: ptr(9)}
		k1, k0 := keys("k1")[0], keys("k0")[0]
		forged := k1
		forged.Secret = transport.Static("another secret of 16 bytes")
		old := sealed(k1, throttle.Directive{Permits: ptr(50)})
		wait(time.Second)
		issue(t, in, throttle.Directive{Permits: ptr(6)})
		for name, c := range map[string]struct{ body, refused string }{
			"no JSON":           {"permits: 0", "malformed"},
			"not one document":  {sealed(k1, good) + "{}", "malformed"},
			"too long":          {sealed(k1, good) + strings.Repeat(" ", 4096), "malformed"},
			"later version":     {strings.Replace(sealed(k1, good), `"v":1`, `"v":2`, 1), "malformed"},
			"not signed":        {sealed(throttle.Key{}, good), "signature"},
			"forged":            {sealed(forged, good), "signature"},
			"unknown key":       {sealed(keys("k9")[0], good), "signature"},
			"number changed":    {strings.Replace(sealed(k1, good), `"permits":9`, `"permits":99`, 1), "signature"},
			"longer time":       {strings.Replace(sealed(k1, good), `"seq":`, `"expires_at":"2400-01-01T00:00:00Z","seq":`, 1), "signature"},
			"replayed":          {old, "stale"},
			"negative":          {resign(t, k1, sealed(k1, good), func(d *throttle.Directive) { d.Permits = ptr(-1) }), "out-of-range"},
			"huge":              {resign(t, k1, sealed(k1, good), func(d *throttle.Directive) { d.Permits = ptr(math.MaxInt) }), "out-of-range"},
			"negative rate":     {resign(t, k1, sealed(k1, good), func(d *throttle.Directive) { d.Rate = ptr(-0.5) }), "out-of-range"},
			"future":            {resign(t, k1, sealed(k1, good), func(d *throttle.Directive) { d.IssuedAt = d.IssuedAt.Add(time.Hour) }), "future"},
			"sequence ahead":    {resign(t, k1, sealed(k1, good), func(d *throttle.Directive) { d.Seq = math.MaxInt64 }), "future"},
			"holds for ever":    {resign(t, k1, sealed(k1, good), func(d *throttle.Directive) { d.Permits = ptr(0); d.ExpiresAt = d.IssuedAt.Add(48 * time.Hour) }), "out-of-range"},
			"says nothing":      {resign(t, k1, sealed(k1, good), func(d *throttle.Directive) { d.Permits = nil }), "malformed"},
			"no sequence":       {resign(t, k1, sealed(k1, good), func(d *throttle.Directive) { d.Seq = 0 }), "malformed"},
			"share of what":     {resign(t, k1, sealed(k1, good), func(d *throttle.Directive) { d.Share = "most" }), "malformed"},
			"number too large":  {strings.Replace(sealed(k1, good), `"permits":9`, `"rate":1e999`, 1), "malformed"},
			"fraction":          {strings.Replace(sealed(k1, good), `"permits":9`, `"permits":0.5`, 1), "malformed"},
			"instance nobody's": {resign(t, k1, sealed(k1, good), func(d *throttle.Directive) { d.Member = &throttle.Member{} }), "malformed"},
		} {
			before := len(in.events.kinds(throttle.FleetRefused))
			put(t, b, c.body)
			wait(100 * time.Millisecond)
			told := in.events.kinds(throttle.FleetRefused)
			if len(told) != before+1 || told[before] != c.refused || in.permits() != 6 {
				t.Errorf("%s: told %v, %d permits", name, told[before:], in.permits())
			}
		}
		// Another fleet's is none of our business; the older key still counts.
		put(t, b, resign(t, k1, sealed(k1, good), func(d *throttle.Directive) { d.Scope = "other" }))
		before := len(in.events.kinds(throttle.FleetRefused))
		put(t, b, sealed(k0, throttle.Directive{Permits: ptr(8)}))
		wait(time.Second)
		if in.permits() != 8 || len(in.events.kinds(throttle.FleetRefused)) != before {
			t.Errorf("%d permits by the older key", in.permits())
		}
		if n := in.Status().Counts["signature"]; n != 5 {
			t.Errorf("%d wrong signatures counted", n)
		}
		_ = in.Stop(t.Context())
	})
}

// resign changes a sealed directive and signs it again, as a program with the key
// but without manners would.
func resign(t *testing.T, key throttle.Key, sealed string, edit func(*throttle.Directive)) string {
	t.Helper()
	var d throttle.Directive
	if err := json.Unmarshal([]byte(sealed), &d); err != nil {
		t.Fatal(err)
	}
	edit(&d)
	if err := throttle.Sign(t.Context(), key, &d); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// In whatever order the messages of two issuers come, and however often, all end
// with the same one.
func TestOutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sealed []string
		for i := range 8 {
			raw, err := throttle.Seal(t.Context(), "default", throttle.Key{}, throttle.Directive{Permits: ptr(i + 1)})
			if err != nil {
				t.Fatal(err)
			}
			sealed = append(sealed, string(raw))
			if i%2 == 0 { // two of the same millisecond
				wait(time.Millisecond)
			}
		}
		var ends []int
		for round := range 20 {
			b := memory.New(memory.Config{})
			src := b.Broadcast("control", memory.BroadcastConfig{})
			in := join(t, src, "a", throttle.FleetConfig{})
			for _, i := range shuffled(2*len(sealed), round) {
				put(t, b, sealed[i%len(sealed)])
			}
			wait(10 * time.Second)
			ends = append(ends, in.permits())
			_ = in.Stop(t.Context())
		}
		if slices.Min(ends) != slices.Max(ends) {
			t.Errorf("ended with %v", ends)
		}
	})
}

func shuffled(n, seed int) []int {
	at := make([]int, n)
	for i := range at {
		at[i] = (i*7 + seed*5) % n
		if n%7 == 0 {
			at[i] = (i + seed) % n
		}
	}
	if seed%2 == 1 {
		slices.Reverse(at)
	}
	return at
}

// 0 permits end by themselves, also when the control broker is gone for longer; the
// value from before does not return, and the gate opens step by step.
func TestZeroExpiresWithoutTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		src := b.Broadcast("control", memory.BroadcastConfig{})
		in := join(t, src, "a", throttle.FleetConfig{})
		issue(t, in, throttle.Directive{Permits: ptr(3)})
		res := issue(t, in, throttle.Directive{Permits: ptr(0), ExpiresAt: time.Now().Add(10 * time.Minute)})
		b.FailOpen("control", 1<<30, fmt.Errorf("the broker is away"))
		b.Drop("control")
		wait(9 * time.Minute)
		if st := in.Status(); in.permits() != 0 || st.Connected || st.Error == "" {
			t.Errorf("%d permits, %+v", in.permits(), st)
		}
		var seen []int
		for time.Now().Before(res.Until.Add(8 * time.Second)) {
			if n := in.permits(); len(seen) == 0 || seen[len(seen)-1] != n {
				seen = append(seen, n)
			}
			wait(100 * time.Millisecond)
		}
		if seen[0] != 0 || seen[len(seen)-1] != 20 || len(seen) < 5 || !slices.IsSorted(seen) {
			t.Errorf("permits went %v", seen)
		}
		if n := len(in.events.kinds(throttle.FleetExpired)); n != 1 {
			t.Errorf("%d ends were told", n)
		}
		b.FailOpen("control", 0, nil)
		wait(time.Minute)
		if !in.Status().Connected {
			t.Error("not connected again")
		}
		if res := issue(t, in, throttle.Directive{Permits: ptr(7)}); len(res.Obeyed) != 1 || in.permits() != 7 {
			t.Errorf("after the broker came back: %+v, %d permits", res, in.permits())
		}
		_ = in.Stop(t.Context())
	})
}

// 0 permits without an end get one.
func TestZeroAlwaysEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		in := join(t, b.Broadcast("control", memory.BroadcastConfig{}), "a", throttle.FleetConfig{})
		if res := issue(t, in, throttle.Directive{Rate: ptr(0.0)}); time.Until(res.Until).Round(time.Second) != 15*time.Minute {
			t.Errorf("ends in %v", time.Until(res.Until))
		}
		wait(15*time.Minute + 10*time.Second)
		if _, rate := in.limit.Limits(); rate != -1 {
			t.Errorf("rate %v", rate)
		}
		if _, err := in.Issue(t.Context(), throttle.Directive{Permits: ptr(0), ExpiresAt: time.Now().Add(25 * time.Hour)}); err == nil {
			t.Error("25 h of nothing were issued")
		}
		_ = in.Stop(t.Context())
	})
}

// A total is divided among those who live; nobody guesses.
func TestShareOfATotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		src := b.Broadcast("control", memory.BroadcastConfig{Retain: true})
		cfg := throttle.FleetConfig{MinPermits: 0}
		ins := []*instance{join(t, src, "a", cfg), join(t, src, "b", cfg), join(t, src, "c", cfg)}
		sum := func() (n int) {
			for _, in := range ins {
				n += in.permits()
			}
			return n
		}
		issue(t, ins[0], throttle.Directive{Permits: ptr(10), Share: throttle.Total})
		if got := []int{ins[0].permits(), ins[1].permits(), ins[2].permits()}; fmt.Sprint(got) != "[4 3 3]" {
			t.Errorf("10 shared by three: %v", got)
		}
		ins = append(ins, join(t, src, "d", cfg))
		wait(time.Second)
		if sum() != 10 || ins[3].permits() != 2 {
			t.Errorf("with a fourth: %d in all, %d for it", sum(), ins[3].permits())
		}
		if err := ins[0].Stop(t.Context()); err != nil {
			t.Error(err)
		}
		ins = ins[1:]
		wait(10 * time.Second) // the others may rise step by step
		if sum() != 10 {
			t.Errorf("after one said goodbye: %d in all", sum())
		}
		// Without a broker what was divided stays divided.
		b.FailOpen("control", 1<<30, fmt.Errorf("the broker is away"))
		b.Drop("control")
		wait(time.Hour)
		if sum() != 10 {
			t.Errorf("without a broker: %d in all", sum())
		}
		b.FailOpen("control", 0, nil)
		for range 300 {
			wait(time.Second)
			if sum() != 10 {
				t.Fatalf("after the broker came back: %d in all", sum())
			}
		}
		for _, in := range ins {
			_ = in.Stop(t.Context())
		}
	})
}

// An instance that vanishes without a word is forgotten.
func TestVanishedInstanceIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		src := b.Broadcast("control", memory.BroadcastConfig{})
		in := join(t, src, "a", throttle.FleetConfig{})
		word, err := json.Marshal(throttle.Directive{Version: 1, Scope: "default", ID: "x", IssuedAt: time.Now(), Member: &throttle.Member{Instance: "z", Containers: []string{"orders"}}})
		if err != nil {
			t.Fatal(err)
		}
		put(t, b, string(word))
		wait(time.Second)
		issue(t, in, throttle.Directive{Permits: ptr(10), Share: throttle.Total})
		if in.permits() != 5 {
			t.Errorf("%d permits beside another", in.permits())
		}
		put(t, b, string(word)) // repeated, it is no sign of life
		wait(40 * time.Second)
		if in.permits() != 10 || len(in.events.kinds(throttle.FleetLeft)) != 1 {
			t.Errorf("%d permits after it was gone, told %d times", in.permits(), len(in.events.kinds(throttle.FleetLeft)))
		}
		_ = in.Stop(t.Context())
	})
}

// Start does not wait for a control broker that is away, unless told to.
func TestStartWithoutControlBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		src := b.Broadcast("control", memory.BroadcastConfig{})
		b.FailOpen("control", 1<<30, fmt.Errorf("the broker is away"))
		began := time.Now()
		in := join(t, src, "a", throttle.FleetConfig{})
		if took := time.Since(began); took > 3*time.Second || in.permits() != 20 {
			t.Errorf("Start took %v, %d permits", took, in.permits())
		}
		if st := in.Status(); st.Connected || st.Since.IsZero() || st.Since.Sub(began) > 3*time.Second {
			t.Errorf("not connected since %v", st.Since)
		}
		_ = in.Stop(t.Context())
		f, err := throttle.NewFleet(src, throttle.FleetConfig{RequireSnapshot: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "the broker is away") {
			t.Errorf("Start: %v", err)
		}
	})
}
