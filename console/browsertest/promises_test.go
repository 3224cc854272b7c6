package browsertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !cond(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// One record is retried, released and dead-lettered with the mouse; what cannot be undone asks
// first and does nothing when it is cancelled, as does a drain.
func TestOneRecord(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ context.Context, d *longshore.Delivery) error {
		if d.Attempt > 1 {
			return nil
		}
		return longshore.Retry(errBank, time.Hour)
	}, func(c *container.Config) { c.Redelivery.Backoff.Max = 2 * time.Hour })
	s.publish(2, func(i int, m *longshore.Message) { m.Key = fmt.Appendf(nil, "c-%d", i) })
	eventually(t, "both wait for a retry", func() bool { return s.c.Stats().Parked == 2 })
	p := s.logIn("/c/orders")
	row := func(key, label string) {
		t.Helper()
		p.press(fmt.Sprintf("[...document.querySelectorAll('tr')].find((e) => e.innerText.includes(%q))?.querySelectorAll('button')[%d]", key, map[string]int{"Retry now": 0, "Dead-letter…": 1}[label]))
	}
	row("c-0", "Dead-letter…")
	p.shows("Dead-letter message")
	p.click("Cancel")
	p.until("!document.querySelector('dialog')")
	if st := s.c.Stats(); st.Parked != 2 {
		t.Errorf("a cancelled dialog changed something: %+v", st)
	}
	row("c-0", "Dead-letter…")
	p.click("Dead-letter")
	eventually(t, "one is in the dead-letter queue", func() bool { return s.broker.Inspect("orders.dlq").Ready == 1 })
	p.until("![...document.querySelectorAll('tr')].some((e) => e.innerText.includes('c-0'))") // the rows below have moved up
	row("c-1", "Retry now")
	eventually(t, "the other one is done", func() bool { return s.c.Stats().Acked > 0 && s.c.Stats().Parked == 0 })
	p.click("Drain")
	p.shows("Drain orders?")
	p.click("Cancel")
	if st := s.c.State(); st != container.StateRunning {
		t.Errorf("a cancelled drain made it %v", st)
	}
}

// Dead letters are exported to a file and purged. A purge wants to have the number typed.
func TestExportAndPurge(t *testing.T) {
	t.Parallel()
	s := serve(t, done)
	s.bury(3, nil)
	p := s.logIn("/dead-letters")
	p.shows("undecodable")
	p.click("Export 3")
	p.until("[...document.querySelectorAll('.job a')].some((e) => !e.hidden && e.href.includes('/export'))")
	file := js[string](p, "window.got = ''; fetch([...document.querySelectorAll('.job a')].find((e) => e.href.includes('/export')).href).then((r) => r.text()).then((t) => { window.got = t }); ''")
	p.until("window.got !== ''")
	if file = js[string](p, "window.got"); strings.Count(file, "\n") != 3 || !strings.Contains(file, "d-2") {
		t.Errorf("the export is %q", file)
	}
	p.click("Purge 3")
	p.shows("removed for good")
	if !js[bool](p, "document.querySelector('dialog[open] button[type=submit]').disabled") {
		t.Error("the purge can be confirmed without the number")
	}
	p.do(chromedp.SendKeys("dialog[open] input[inputmode=numeric]", "3"))
	p.click("Purge")
	p.shows("No dead letters")
	if n := s.broker.Inspect("orders.dlq").Ready; n != 0 {
		t.Errorf("%d are left", n)
	}
}

// A time is that of the viewer's zone, with UTC on hover. Nothing moves for a viewer who wants
// no motion. Code that is not in a file of the page's own does not run.
func TestViewersSettings(t *testing.T) {
	t.Parallel()
	s := serve(t, done)
	p := s.logIn("/events")
	p.do(emulation.SetTimezoneOverride("Asia/Kolkata"), scheme("light"))
	s.c.PauseBy(longshore.Intervention{By: "carol", Reason: "deploy"})
	p.until("[...document.querySelectorAll('main tr, main li')].some((e) => e.innerText.includes('paused'))")
	at := js[[]string](p, "((e) => [e.innerText, e.title, e.dateTime])([...document.querySelectorAll('main time')].find((e) => e.title))")
	when, err := time.Parse(time.RFC3339, at[2])
	must(t, err)
	kolkata := when.Add(5*time.Hour + 30*time.Minute).UTC()
	if !strings.HasSuffix(at[0], kolkata.Format("15:04:05")) || at[1] != when.UTC().Format("2006-01-02 15:04:05")+" UTC" {
		t.Errorf("%v is shown as %q, on hover %q", when, at[0], at[1])
	}
	for motion, want := range map[string]string{"reduce": "0s", "no-preference": "0.12s"} {
		p.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: motion}}))
		if got := js[string](p, "getComputedStyle(document.querySelector('#theme')).transitionDuration.split(',')[0]"); got != want {
			t.Errorf("with %s a change takes %s", motion, got)
		}
	}
	js[any](p, "(() => { const e = document.createElement('script'); e.textContent = 'window.inline = 1'; document.body.append(e); const i = document.createElement('div'); i.setAttribute('onclick', 'window.inline = 2'); document.body.append(i); i.click(); })()")
	if js[bool](p, "window.inline !== undefined") {
		t.Error("inline code runs")
	}
}

// The container that needs a person is the first row, whatever its name. Buttons that cause
// faults are those of the demo alone.
func TestTheOneThatNeedsAPersonIsFirst(t *testing.T) {
	t.Parallel()
	s := serve(t, done)
	for _, name := range []string{"alpha", "zulu"} {
		c, err := container.New(memory.New(memory.Config{}).Queue(name, memory.QueueConfig{}), longshore.HandlerFunc(done), container.Config{Name: name, Logger: zap.NewNop()})
		must(t, err)
		must(t, c.Start(t.Context()))
		t.Cleanup(func() { _ = c.Stop(context.Background()) })
		s.cfg.Containers = append(s.cfg.Containers, c)
	}
	s.close()
	s.open()
	p := s.logIn("")
	names := func(first string) {
		t.Helper()
		p.until(fmt.Sprintf("document.querySelectorAll('main .item').length === 3 && document.querySelector('main .item').innerText.trim().includes(%q)", first))
	}
	names("alpha")
	s.cfg.Containers[2].PauseBy(longshore.Intervention{By: "carol", Reason: "deploy"})
	names("zulu")
	if js[bool](p, "!document.querySelector('#faults').hidden || /[Pp]oison/.test(document.body.innerText)") {
		t.Error("a service has buttons that cause faults")
	}
	js[any](p, "window.got = 0; fetch('api/actions/poison', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'}).then((r) => { window.got = r.status }); 0")
	p.until("window.got !== 0")
	if got := js[int](p, "window.got"); got != 404 {
		t.Errorf("a fault of the demo is answered with %d", got)
	}
}
