package top

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/fleet"
	"github.com/longshore-go/longshore/middleware/throttle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 3, 4, 14, 2, 11, 0, time.UTC)

func count(n int64) *int64 { return &n }

// well is a container that is well.
func well(name string, set ...func(*admin.Container)) admin.Container {
	c := admin.Container{Name: name, Transport: "rabbitmq", Source: name, State: container.StateRunning, Since: noon.Add(-2 * time.Hour), Live: true, Ready: true,
		Rate: 812, Backlog: count(410), BacklogAt: noon, Oldest: 0.4, InFlight: 16, Workers: admin.Workers{Now: 16, Busy: 14, Min: 2, Max: 100},
		HandlerP50: 0.018, HandlerP99: 0.095, Received: 901_200, Acked: 900_000, Retried: 38, Dead: 12}
	for _, f := range set {
		f(&c)
	}
	return c
}

// instance is one whose numbers rise.
func instance(name string, cs ...admin.Container) fleet.Instance {
	in := fleet.Instance{Name: name, Status: fleet.Live, Since: noon.Add(-time.Hour), Heard: noon, Session: admin.Session{Version: "v1.2.0"}, Containers: cs, Series: map[string][]fleet.Point{}}
	for _, c := range cs {
		for i := range 60 {
			share := float64(i) / 59
			in.Series[c.Name] = append(in.Series[c.Name], fleet.Point{At: noon.Add(time.Duration(i-59) * time.Second), In: c.Rate * share, Done: c.Rate * share, Backlog: 400 - 300*share,
				Workers: int(float64(c.Workers.Now) * share), P99: c.HandlerP99, Parked: c.Parked})
		}
	}
	return in
}

// shop is what experience.md draws: three containers of which two need a person.
func shop() fleet.Snapshot {
	recovering := well("invoices", func(c *admin.Container) {
		c.Transport, c.Source, c.State, c.Ready, c.Rate, c.Backlog, c.Oldest = "kafka", "billing", container.StateRecovering, false, 0, count(1204), 9
		c.Workers, c.Dead, c.Retried = admin.Workers{Now: 9, Min: 1, Max: 30}, 0, 35
		c.Limited = container.Bottleneck{By: container.ByBroker, Since: noon.Add(-4 * time.Second), Text: "recovering: login refused at k2:9092 (auth) since 14:02:07, next attempt in 2 s; check user and password from env:KAFKA_PW"}
	})
	paused := well("audit", func(c *admin.Container) {
		c.Transport, c.State, c.Rate, c.Backlog, c.Oldest, c.InFlight = "sqs", container.StatePaused, 0, count(77), 0, 0
		c.Level = admin.LevelNotice
		c.Workers, c.Dead = admin.Workers{Now: 0, Min: 1, Max: 1}, 0
		c.Limited = container.Bottleneck{By: container.ByState, Who: "anna", Text: "it is paused by anna (deploy) since 13:59:02; longshore ctl resume audit ends that"}
	})
	orders := well("orders", func(c *admin.Container) {
		c.Throttle = &throttle.State{Limits: throttle.Limits{Permits: 20, Rate: -1}, InUse: 14, Configured: throttle.Limits{Permits: -1, Rate: -1}}
	})
	return fleet.Snapshot{At: noon, Instances: []fleet.Instance{instance("shop-1:8391", orders, recovering, paused)}}
}

// two is shop on two instances with different bounds, and a third that does not answer.
func two() fleet.Snapshot {
	s := shop()
	second := instance("shop-2:8391", well("orders", func(c *admin.Container) { c.Workers.Max = 50; c.Rate = 400 }))
	second.Session.Version, second.Restarted = "v1.3.0", noon.Add(-40*time.Second)
	silent := instance("shop-3:8391", well("orders"))
	silent.Status, silent.Since, silent.Heard, silent.Problem, silent.Help = fleet.Silent, noon.Add(-50*time.Second), noon.Add(-51*time.Second), "connection refused", "is the service running, with an admin server?"
	s.Instances = append(s.Instances, second, silent)
	return s
}

func screen(s fleet.Snapshot) Screen { return Screen{Width: 80, Height: 24, Now: noon, Fleet: s} }

// one is the page of a container with deliveries and events.
func one() Screen {
	s := screen(shop())
	s.Page, s.Selected = One, "orders"
	o := &s.Fleet.Instances[0].Containers[0]
	o.Failed = map[longshore.Code]int64{longshore.CodeHandler: 31, longshore.CodeTimeout: 7}
	o.Throttle.Operator = &throttle.Override{By: "anna", Reason: "ledger slow", At: noon.Add(-5 * time.Minute), Until: noon.Add(5 * time.Minute)}
	o.Limited = container.Bottleneck{By: container.ByStuck, Text: `1 handler does not return: record 01J9QK4F (key "c-91") has run for 41s since 14:01:30, p99 is 95ms; longshore ctl stuck orders shows its stack`}
	o.Stuck, o.Level, o.Window, o.Queued, o.Blocked, o.HotShare, o.LastDelivery, o.HandlerUsual = 1, admin.LevelProblem, 80, 11, 3, 0.31, noon.Add(-200*time.Millisecond), 0.017
	s.Held = Held{Container: "orders", Total: 16, Address: "rabbit.internal:5672, vhost shop", Records: []HeldRecord{
		{admin.Record{Record: "01J9QK4F", Key: "c-91", State: container.HeldStuck, Attempt: 1, Of: 5, Age: 41}, "shop-1:8391", "ledger.(*Client).Book client.go:88"},
		{admin.Record{Record: "01J9QK51", Key: "c-02", State: container.HeldRunning, Attempt: 2, Of: 5, Age: 0.05}, "shop-1:8391", ""},
		{admin.Record{Record: "01J9QK60", Key: "c-77", State: container.HeldParked, Attempt: 3, Of: 5, Age: 9, Due: noon.Add(4 * time.Second)}, "shop-1:8391", ""}},
		Keys:   []admin.Key{{Key: "c-91", Waiting: 11, Share: 0.31, State: container.HeldStuck, Attempt: 1, Age: 41}},
		Errors: []admin.Trouble{{Code: "handler", Text: "ledger: no such account", Count: 31, Last: noon.Add(-20 * time.Second)}}}
	s.Fleet.Instances[0].Events = []admin.Event{
		{Time: noon.Add(-time.Hour), Container: "orders", Kind: "subscribed", Text: "generation 1"}, {Time: noon.Add(-time.Hour), Container: "audit", Kind: "subscribed", Text: "generation 1"},
		{Time: noon.Add(-5 * time.Minute), Container: "orders", Kind: "operator", Text: "throttle permits 20 for 10m", By: "anna", Reason: "ledger slow"},
		{Time: noon.Add(-31 * time.Second), Container: "orders", Kind: "scaled", Text: "workers 8 → 16", Reason: "saturated"}}
	return s
}

// The screens as they are, in testdata. go test ./internal/top -update writes them; the docs
// show two of them.
func TestScreens(t *testing.T) {
	filtered := screen(shop())
	filtered.Filter = "nothing of this name"
	asking := one()
	asking = press(asking, "t")
	narrow := screen(two())
	narrow.Width, narrow.Height = 40, 12
	wide := screen(two())
	wide.Width, wide.Height = 140, 20
	ascii := screen(two())
	ascii.Look.ASCII = true
	colors := screen(shop())
	colors.Look.Color = true
	help := screen(shop())
	help.Page = Help
	many := one()
	many.Fleet.Instances = append(many.Fleet.Instances, two().Instances[1:]...)
	kafka := one()
	kafka.Held.Partitions = []admin.Partition{{Topic: "orders", Partition: 2, Next: 120, End: 410, Committed: 90, Lag: 320, Position: 90, Since: noon.Add(-2 * time.Minute), Behind: 30, Window: 31, Full: true, Attempt: 3, Due: noon.Add(9 * time.Second)},
		{Topic: "orders", Partition: 0, Next: 55, End: 60, Committed: 55, Lag: 5}}
	share := 0.62
	kafka.Held.Consumers = &admin.Consumers{Total: 2, Share: &share, List: []admin.SourceConsumer{{ID: "a", Own: true}, {ID: "b", Client: "shop v1", Host: "10.0.0.7"}}}
	draining := press(press(one(), "D"), "o", "r", "d", "enter")
	for name, s := range map[string]Screen{
		"overview": screen(shop()), "two": screen(two()), "one": one(), "filtered": filtered, "throttle": asking, "narrow": narrow, "wide": wide, "ascii": ascii, "colors": colors,
		"help": help, "kafka": kafka, "dead-letter": press(one(), "down", "down", "x"), "one-of-three": many, "drain": draining, "empty": screen(fleet.Snapshot{Instances: []fleet.Instance{{Name: "a:1", Status: fleet.Asking}}}),
	} {
		got := s.View() + "\n"
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs from %s; go test ./internal/top -update writes it:\n%s", name, path, got)
		}
		fits(t, name, s)
	}
}

// The page in the docs shows what top shows.
func TestDocsShowTheScreens(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/watch-a-service.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Screen{screen(shop()), one(), screen(two())} {
		text := strings.TrimRight(regexp.MustCompile(`\n{4,}`).ReplaceAllString(s.View(), "\n\n\n"), "\n")
		if !strings.Contains(string(page), text+"\n```") {
			t.Errorf("docs/how-to/watch-a-service.md does not show\n%s", text)
		}
	}
}

func press(s Screen, keys ...string) Screen {
	for _, k := range keys {
		text := ""
		if len([]rune(k)) == 1 {
			text = k
		}
		s, _ = s.Press(k, text)
	}
	return s
}

// fits checks that a screen stays within its size.
func fits(t *testing.T, name string, s Screen) {
	t.Helper()
	lines := strings.Split(s.View(), "\n")
	if len(lines) > s.Height {
		t.Errorf("%s: %d lines of %d", name, len(lines), s.Height)
	}
	for _, l := range lines {
		if width(l) > s.Width {
			t.Errorf("%s: %d columns of %d: %q", name, width(l), s.Width, l)
		}
		if s.Look.ASCII && strings.ContainsFunc(l, func(r rune) bool { return r > 0x7e }) {
			t.Errorf("%s: not ASCII: %q", name, l)
		}
	}
}

// Every page fits every size.
func TestEverySizeFits(t *testing.T) {
	for w := 1; w < 200; w += 13 {
		for h := 1; h < 60; h += 9 {
			for _, s := range []Screen{screen(shop()), screen(two()), one(), press(one(), "t"), press(screen(two()), "?"), press(screen(shop()), "/", "x")} {
				s.Width, s.Height = w, h
				fits(t, "size", s)
			}
		}
	}
}

// What comes from messages moves no cursor and changes no colour, however long it is.
func TestHostileTextIsInert(t *testing.T) {
	hostile := []string{"\x1b[2J\x1b[31mred", "\u202egnp.exe", "\xff\xfe", "a\r\nb\tc", strings.Repeat("é", 1<<20), "\x9b31m", "<script>alert(1)</script>", "\x07\x08\x00"}
	for _, h := range hostile {
		s := one()
		o := &s.Fleet.Instances[0].Containers[0]
		o.Source, o.Limited.Text, o.Paused = h, h, nil
		o.Throttle.Operator.By, o.Throttle.Operator.Reason = h, h
		s.Held.Records[0].Key, s.Held.Records[0].Record.Record, s.Held.Records[0].At = h, h, h
		s.Held.Address, s.Held.Keys[0].Key, s.Held.Errors[0].Text = h, h, h
		s.Held.Partitions = []admin.Partition{{Topic: h, Since: noon}}
		s.Fleet.Instances[0].Events[3].Text, s.Fleet.Instances[0].Events[3].Kind = h, h
		s.Fleet.Instances[0].Name = h
		over := s
		over.Page = Overview
		o.Name = h
		named := over
		named.Fleet.Instances[0].Status, named.Fleet.Instances[0].Problem = fleet.Silent, h
		for _, s := range []Screen{s, over, named} {
			v := s.View()
			if i := strings.IndexFunc(v, func(r rune) bool { return r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u202e') }); i >= 0 {
				t.Errorf("%.20q: %.60q", h, v[i:])
			}
			fits(t, "hostile", s)
		}
		for _, l := range Lines(s.Fleet, noon) {
			if text := l.String(); strings.ContainsAny(text, "\x1b\n\r\u202e\u009b") {
				t.Errorf("%.20q: %.100q", h, text)
			}
		}
	}
}

// The states are told apart without colours.
func TestColourIsNeverAlone(t *testing.T) {
	with := screen(two())
	with.Look.Color = true
	without := screen(two())
	if stripped := strip(with.View()); stripped != without.View() {
		t.Errorf("without colours it says:\n%s", stripped)
	}
	seen := map[string]bool{}
	s := screen(shop())
	for _, g := range s.groups() {
		glyph, word, _ := s.state(rowOf(&g).worst, rowOf(&g).urge)
		seen[glyph+word] = true
	}
	if len(seen) != 3 {
		t.Errorf("three states look like %v", seen)
	}
}
