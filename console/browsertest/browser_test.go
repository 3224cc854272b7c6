package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

var browser context.Context //nolint:containedctx // one browser for all tests

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	path := chrome()
	if path == "" {
		text := "no Chromium: install the Debian package chromium, or set CHROME"
		if os.Getenv("LONGSHORE_BROKERS") == "required" {
			fmt.Fprintln(os.Stderr, "FAIL:", text)
			return 1
		}
		fmt.Fprintln(os.Stderr, "SKIPPED, ALL OF THEM:", text)
		return 0
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1360, 900),
		chromedp.Flag("lang", "en-GB"), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	defer stop()
	var cancel context.CancelFunc
	browser, cancel = chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {})) // events that are newer than the client
	defer cancel()
	if err := chromedp.Run(browser); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: the browser does not start:", err)
		return 1
	}
	return m.Run()
}

func chrome() string {
	for _, name := range []string{os.Getenv("CHROME"), "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil && name != "" {
			return path
		}
	}
	return ""
}

const token = "the token of anna, long enough"

// service is a container on the memory broker with its page.
type service struct {
	t      *testing.T
	broker *memory.Broker
	c      *container.ListenerContainer
	limit  *throttle.Limiter
	a      *admin.Server
	cfg    admin.Config
	pub    transport.Publisher
	dest   string
}

// serve starts a container "orders" with a handler, dead letters to "orders.dlq", and the
// page.
func serve(t *testing.T, handle longshore.HandlerFunc, edit ...func(*container.Config)) *service {
	t.Helper()
	s := &service{t: t, broker: memory.New(memory.Config{}), limit: throttle.NewUnlimited()}
	cc := container.Config{Name: "orders", Order: container.ByKey, Throttle: s.limit, DeadLetter: container.DeadLetter{To: "orders.dlq"}, Logger: zap.NewNop(),
		Redelivery: container.Redelivery{MaxAttempts: 3, Backoff: container.Backoff{Initial: 100 * time.Millisecond, Max: time.Second}}}
	for _, e := range edit {
		e(&cc)
	}
	src := s.broker.Queue("orders", memory.QueueConfig{})
	c, err := container.New(src, handle, cc)
	must(t, err)
	must(t, c.Start(t.Context()))
	s.c = c
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_ = c.Stop(ctx) // a handler that hangs is abandoned
	})
	s.pub, s.dest, err = src.(transport.Outlet).Publisher(t.Context())
	must(t, err)
	s.cfg = admin.Config{Addr: "127.0.0.1:0", Instance: "shop-1", Containers: []*container.ListenerContainer{c}, Operators: map[string]transport.Secret{"anna": transport.Static(token)}, Logger: zap.NewNop()}
	s.open()
	return s
}

// open starts the page; close ends it and may be called again.
func (s *service) open() {
	s.t.Helper()
	a, err := admin.New(s.cfg)
	must(s.t, err)
	must(s.t, a.Start(context.Background()))
	s.a = a
	s.cfg.Addr = a.Addr() // a restart has the same
	s.t.Cleanup(s.close)
}

func (s *service) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.a.Stop(ctx); err != nil {
		s.t.Error(err)
	}
}

func (s *service) publish(n int, edit func(i int, m *longshore.Message)) {
	s.t.Helper()
	for i := range n {
		m := &longshore.Message{Body: []byte(`{"n":1}`), ContentType: "application/json"}
		m.Headers.Set(longshore.HeaderID, fmt.Sprintf("m-%d", i))
		if edit != nil {
			edit(i, m)
		}
		must(s.t, s.pub.Publish(s.t.Context(), s.dest, m))
	}
}

// ask is a call of the API as anna.
func (s *service) ask(path string) (v map[string]any) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.a.Addr()+path, nil)
	must(s.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	must(s.t, err)
	defer res.Body.Close()
	must(s.t, json.NewDecoder(res.Body).Decode(&v))
	return v
}

// tab is one page in the browser. At its end no error may be in its console, and it may
// have asked no other host.
type tab struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // lives and ends with the test

	mu      sync.Mutex
	wrong   []string
	hosts   map[string]bool
	offline bool // errors of the network are meant
}

func openTab(t *testing.T, address string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	must(t, chromedp.Run(ctx)) // the tab lives as long as the context of its first action
	p := &tab{t: t, ctx: ctx, hosts: map[string]bool{}}
	chromedp.ListenTarget(ctx, p.hear)
	p.do(network.Enable(), emulation.SetFocusEmulationEnabled(true), chromedp.EmulateViewport(1360, 900), chromedp.Navigate(address))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.wrong) > 0 {
			t.Errorf("in the browser's console: %q", p.wrong)
		}
		at, _ := url.Parse(address)
		for h := range p.hosts {
			if h != at.Host && h != "" {
				t.Errorf("the page asked the host %s", h)
			}
		}
	})
	return p
}

func (p *tab) hear(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		p.wrong = append(p.wrong, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
			p.wrong = append(p.wrong, fmt.Sprint(e.Args))
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil {
			p.hosts[u.Host] = true
		}
	}
}

func (p *tab) do(actions ...chromedp.Action) {
	p.t.Helper()
	if err := p.try(actions...); err != nil {
		p.t.Fatal(err)
	}
}

// try does something within 15 s.
func (p *tab) try(actions ...chromedp.Action) error {
	ctx, cancel := context.WithTimeout(p.ctx, 15*time.Second)
	defer cancel()
	return chromedp.Run(ctx, actions...)
}

// js evaluates an expression.
func js[T any](p *tab, expression string) (v T) {
	p.t.Helper()
	if err := p.try(chromedp.Evaluate(expression, &v)); err != nil {
		p.t.Fatalf("%v in %s", err, expression)
	}
	return v
}

// until waits for an expression to be true.
func (p *tab) until(expression string) {
	p.t.Helper()
	p.within(10*time.Second, expression)
}

func (p *tab) within(d time.Duration, expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, d)
	defer cancel()
	var ok bool
	if err := chromedp.Run(ctx, chromedp.Poll(expression, &ok, chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(d))); err != nil {
		text := js[string](p, "document.body.innerText")
		p.t.Fatalf("not within %v: %s (%v)\n%.3000s", d, expression, err, text)
	}
}

// shows waits for a text that can be seen.
func (p *tab) shows(text string) {
	p.t.Helper()
	raw, _ := json.Marshal(text)
	p.until("document.body.innerText.includes(" + string(raw) + ")")
}

// click moves the mouse to the first button or link whose text begins so, and presses: as for a
// person, it must be on the screen after scrolling, with nothing in front of it.
func (p *tab) click(label string) {
	p.t.Helper()
	raw, _ := json.Marshal(label)
	p.press("[...(document.querySelector('dialog[open]') || document).querySelectorAll('button, a')].find((b) => b.textContent.trim().startsWith(" + string(raw) + ") && !b.disabled && b.getClientRects().length)")
}

// press clicks on what an expression finds.
func (p *tab) press(find string) {
	p.t.Helper()
	p.until("!!" + find)
	at := p.reach(find)
	p.do(chromedp.MouseClickXY(at.X, at.Y))
}

// drag moves the knob of a slider to a share of its way.
func (p *tab) drag(find string, to float64) {
	p.t.Helper()
	p.until("!!" + find)
	at := p.reach(find)
	knob := js[float64](p, "((r) => (r.value - r.min) / (r.max - r.min))("+find+")")
	const edge = 8 // half of the knob
	pos := func(share float64) float64 { return at.Left + edge + share*(at.W-2*edge) }
	p.do(chromedp.MouseEvent(input.MousePressed, pos(knob), at.Y, chromedp.ButtonLeft, chromedp.ClickCount(1)),
		chromedp.MouseEvent(input.MouseMoved, pos((knob+to)/2), at.Y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.MouseMoved, pos(to), at.Y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.MouseReleased, pos(to), at.Y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
}

// place is a point of an element in the window, near its beginning if it is long (the end of an
// id may be cut off), with where the element begins and its width.
type place struct{ X, Y, Left, W float64 }

// reach scrolls to what an expression finds and waits until the mouse would hit it.
func (p *tab) reach(find string) (at place) {
	p.t.Helper()
	p.until(`((e) => {
  if (!e) return false;
  e.scrollIntoView({block: 'center', behavior: 'instant'});
  const r = e.getClientRects()[0] || new DOMRect(), x = r.x + Math.min(r.width / 2, 60), y = r.y + r.height / 2, hit = document.elementFromPoint(x, y);
  window.reached = {X: x, Y: y, Left: r.x, W: r.width};
  return !!hit && (e === hit || e.contains(hit));
})(` + find + ")")
	return js[place](p, "window.reached")
}

// sees waits until a text is in the window as it is, without scrolling, and nothing covers it.
func (p *tab) sees(text string, within time.Duration) {
	p.t.Helper()
	raw, _ := json.Marshal(text)
	p.within(within, `(() => {
  const all = [...document.querySelectorAll('body *')].filter((e) => e.getClientRects().length && e.innerText?.includes(`+string(raw)+`));
  return all.some((e) => {
    if ([...e.children].some((c) => all.includes(c))) return false;
    const r = e.getBoundingClientRect(), x = r.x + Math.min(r.width / 2, 40), y = r.y + r.height / 2;
    if (r.top < 0 || r.left < 0 || r.bottom > innerHeight || r.right > innerWidth) return false;
    const hit = document.elementFromPoint(x, y);
    return !!hit && (e === hit || e.contains(hit));
  });
})()`)
}

// logIn opens a view as anna.
func (s *service) logIn(route string) *tab {
	s.t.Helper()
	p := openTab(s.t, s.a.Link(s.t.Context()))
	p.until("document.querySelector('.link.live') && document.querySelector('#who').innerText.includes('anna')")
	if route != "" {
		js[any](p, "location.hash = '"+route+"'")
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func done(context.Context, *longshore.Delivery) error { return nil }

var errBank = errors.New("the bank is closed")

func scheme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}})
}
