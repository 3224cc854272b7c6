package browsertest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// A row appears, a number moves without a reload, a click pauses: page, API and container
// agree. Then permits and bounds are set with the mouse.
func TestSteer(t *testing.T) {
	t.Parallel()
	s := serve(t, done)
	p := s.logIn("")
	p.shows("The container is well")
	js[any](p, "window.mark = 1")
	s.publish(300, nil)
	p.until("[...document.querySelectorAll('.item .c2')].some((e) => parseFloat(e.textContent) > 0)")
	if js[int](p, "window.mark") != 1 {
		t.Error("the page was loaded again")
	}
	p.click("orders")
	p.until("document.querySelector('h1').textContent === 'orders'")
	p.until("document.querySelectorAll('canvas').length === 6 && document.querySelector('canvas').getAttribute('aria-label').includes('in ')")
	p.click("Pause")
	p.do(chromedp.SendKeys("input[placeholder=reason]", "lunch"))
	p.click("Pause now")
	p.shows("paused by anna (lunch)")
	if st := s.c.State(); st != container.StatePaused || s.ask("/api/containers/orders")["state"] != "paused" {
		t.Errorf("the page says paused, the container %v", st)
	}
	p.click("Resume")
	p.until("document.querySelector('h1 + .badge').innerText.includes('running')")
	if st := s.c.State(); st != container.StateRunning {
		t.Errorf("the page says running, the container %v", st)
	}
	p.drag("document.querySelector('input[type=range]')", 0.25)
	chosen := js[int](p, "Number(document.querySelector('input[type=range]').value)")
	if most := js[int](p, "Number(document.querySelector('input[type=range]').max)"); chosen < 1 || chosen > most/2 {
		t.Errorf("the slider was drawn to a quarter, and is at %d of %d", chosen, most)
	}
	p.click("Limit")
	p.shows(fmt.Sprintf("%d at once, 0 in use; set by anna until", chosen))
	if n := s.c.Stats().Permits; n != chosen {
		t.Errorf("the page says %d permits, the container %d", chosen, n)
	}
	p.click("Clear")
	p.shows("No limit of handlers at once")
	most := func(n string) { // marks what is there, and types
		p.press("document.querySelector('input[aria-label=\"Most workers\"]')")
		js[any](p, "document.activeElement.select()")
		p.do(chromedp.KeyEvent(n))
	}
	most("0")
	p.click("Set")
	p.shows("error[config]") // refused, with what to do
	p.shows("to hold everything pause it")
	most("7")
	p.click("Set")
	p.until("document.body.innerText.includes('set') && !document.body.innerText.includes('error[config]')")
	if n := s.c.Stats().Max; n != 7 {
		t.Errorf("the page set 7 workers, the container has %d", n)
	}
	js[any](p, "location.hash = '/events'")
	p.shows("paused")
	p.shows("by anna")
}

// slowQueue publishes slowly, so that a replay takes its time.
type slowQueue struct {
	transport.Source
	transport.Outlet
	transport.Browser
	transport.Describer
}

type slowPublisher struct{ transport.Publisher }

func (q slowQueue) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	p, self, err := q.Outlet.Publisher(ctx)
	return slowPublisher{p}, self, err
}

func (p slowPublisher) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	select {
	case <-time.After(250 * time.Millisecond):
	case <-ctx.Done():
	}
	return p.Publisher.Publish(ctx, dest, msgs...)
}

func (s *service) bury(n int, edit func(i int, m *longshore.Message)) {
	s.t.Helper()
	dead := s.broker.Queue("orders.dlq", memory.QueueConfig{})
	pub, self, err := dead.(transport.Outlet).Publisher(s.t.Context())
	must(s.t, err)
	for i := range n {
		m := &longshore.Message{Body: []byte(fmt.Sprintf(`{"order":%d,"card":{"card_number":"4111"},"html":"<b>&</b>"}`, i)), ContentType: "application/json", Key: []byte(fmt.Sprintf("c-%d", i))}
		m.Headers.Set(longshore.HeaderID, fmt.Sprintf("d-%d", i))
		m.Headers.Set("longshore-dead-source", "orders")
		m.Headers.Set("longshore-dead-reason", "undecodable")
		m.Headers.Set("longshore-dead-error", "it was not well")
		m.Headers.Set("longshore-dead-at", time.Now().UTC().Format(time.RFC3339Nano))
		if edit != nil {
			edit(i, m)
		}
		must(s.t, pub.Publish(s.t.Context(), self, m))
	}
	s.cfg.DeadLetters = map[string]transport.Source{"orders": slowQueue{dead, dead.(transport.Outlet), dead.(transport.Browser), dead.(transport.Describer)}}
	s.close()
	s.open()
}

// 1,000 dead letters are replayed with a bar, while the page is closed and opened again.
func TestReplayGoesOn(t *testing.T) {
	t.Parallel()
	s := serve(t, done)
	s.bury(1000, nil)
	p := s.logIn("/dead-letters")
	p.shows("undecodable (500)")
	p.click("d-0")
	p.shows(`"order": 0`)
	p.shows("masked: card")
	if text := js[string](p, "document.querySelector('pre').textContent"); strings.Contains(text, "4111") || !strings.Contains(text, `"<b>&</b>"`) {
		t.Errorf("the body is shown as %s", text)
	}
	p.click("Replay 500+")
	p.do(chromedp.SendKeys("dialog[open] input[inputmode=numeric]", "500"))
	p.click("Replay")
	p.until("!!document.querySelector('.job progress')")
	p.do(chromedp.Navigate("about:blank"))
	p = s.logIn("/dead-letters")
	p.shows("replay of orders")
	if st := s.ask("/api/jobs")["jobs"].([]any)[0].(map[string]any); st["state"] != "running" || st["done"].(float64) == 0 {
		t.Errorf("when the page is opened again the job is %v", st)
	}
	p.shows("✓ replay of orders: 1,000 of 1,000")
	deadline := time.Now().Add(5 * time.Second)
	for s.c.Stats().Acked < 1000 && time.Now().Before(deadline) {
		<-time.After(20 * time.Millisecond)
	}
	if n := s.c.Stats().Acked; n != 1000 {
		t.Errorf("%d of 1,000 were handled", n)
	}
	p.shows("No dead letters")
}

// line is a wire between the browser and the service that can be cut.
type line struct {
	net.Listener
	to string

	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	must(t, err)
	l := &line{Listener: ln, to: to}
	t.Cleanup(func() { _ = ln.Close(); l.cut() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l.pass(c)
		}
	}()
	return l
}

func (l *line) pass(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	far, err := net.Dial("tcp", l.to) //nolint:noctx // a test
	if l.down || err != nil {
		_ = c.Close()
		return
	}
	l.conns = append(l.conns, c, far)
	go func() { _, _ = io.Copy(far, c); _ = far.Close() }()
	go func() { _, _ = io.Copy(c, far); _ = c.Close() }()
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// A stream that is cut: what is shown is stale, nothing can be pressed; it comes back
// without a reload. A restart of the instance is shown as one.
func TestStaleAndRestart(t *testing.T) {
	t.Parallel()
	s := serve(t, done)
	wire := newLine(t, s.a.Addr())
	_, code, _ := strings.Cut(s.a.Link(t.Context()), "#")
	p := openTab(t, "http://"+wire.Addr().String()+"/#"+code)
	p.until("document.querySelector('#who').innerText.includes('anna')")
	js[any](p, "location.hash = '/c/orders'; window.mark = 1")
	p.until("[...document.querySelectorAll('button')].some((b) => b.textContent === 'Pause' && !b.disabled)")
	wire.cut()
	p.shows("stale since")
	p.until("document.body.classList.contains('stale') && [...document.querySelectorAll('main button')].every((b) => b.disabled || !b.getClientRects().length)")
	p.until("document.querySelector('#said').textContent.includes('Connection lost')")
	wire.mend()
	p.until("!!document.querySelector('.link.live')")
	p.until("[...document.querySelectorAll('button')].some((b) => b.textContent === 'Pause' && !b.disabled)")
	s.close()
	p.shows("stale since")
	s.open()
	p.shows("shop-1 was restarted")
	if js[int](p, "window.mark") != 1 {
		t.Error("the page was loaded again")
	}
}

// The page works below a path of a proxy; one that forwards is another host, so it asks for
// a token first.
func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	s := serve(t, done)
	to, err := url.Parse("http://" + s.a.Addr())
	must(t, err)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.SetXForwarded()
	}}
	front := httptest.NewServer(http.StripPrefix("/tools/longshore", proxy))
	t.Cleanup(front.Close)
	p := openTab(t, front.URL+"/tools/longshore/")
	p.shows("A token is needed")
	if text := js[string](p, "document.body.innerText"); strings.Contains(text, "orders") || strings.Contains(text, "shop-1") {
		t.Errorf("without a token it shows %s", text)
	}
	p.do(chromedp.SendKeys("input[type=password]", token+kb.Enter))
	p.until("!!document.querySelector('.link.live')")
	p.shows("The container is well")
	if c := js[string](p, "document.cookie + JSON.stringify(localStorage) + location.href"); strings.Contains(c, "longshore-") || strings.Contains(c, token) {
		t.Errorf("a script can read %s", c)
	}
	t.Cleanup(s.close) // the stream ends before the front does
}

// A page of another site can neither change anything nor read.
func TestCrossSite(t *testing.T) {
	t.Parallel()
	s := serve(t, done)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<!doctype html><title>evil</title>")
	}))
	t.Cleanup(evil.Close)
	p := s.logIn("")
	p.mu.Lock()
	p.hosts = map[string]bool{}
	p.mu.Unlock()
	p.do(chromedp.Navigate(strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)))
	for _, how := range []string{"{method: 'POST', mode: 'no-cors', credentials: 'include'}", "{method: 'GET', credentials: 'include'}"} {
		js[string](p, "window.got = ''; fetch('http://"+s.a.Addr()+"/api/containers/orders/pause', "+how+").then((r) => { window.got = r.type + r.status }, () => { window.got = 'refused' }); ''")
		p.until("window.got !== ''")
		if got := js[string](p, "window.got"); got != "refused" && got != "opaque0" {
			t.Errorf("%s: %s", how, got)
		}
	}
	if st := s.c.State(); st != container.StateRunning {
		t.Errorf("another site changed the state to %v", st)
	}
	p.mu.Lock()
	p.hosts, p.wrong = map[string]bool{}, nil // its own doing
	p.mu.Unlock()
}

// What comes from messages is text: scripts, terminal escapes, marks that turn the
// direction, invalid UTF-8, keys of a megabyte.
func TestHostile(t *testing.T) {
	t.Parallel()
	const script = `<script>window.hacked=1</script><img src=x onerror="window.hacked=2">`
	hold := make(chan struct{})
	s := serve(t, func(ctx context.Context, d *longshore.Delivery) error {
		if strings.HasPrefix(string(d.Key), "hang") {
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return nil
		}
		return longshore.Reject(fmt.Errorf("%s \x1b[31mred\x1b[0m \u202egnp.exe", script))
	})
	t.Cleanup(func() { close(hold) })
	keys := []string{script, "\x1b]0;title\a\x1b[2J", "abc\u202egnp\u2066", "\xff\xfe\xc3(", strings.Repeat("k", 1<<20), "hang" + script}
	s.publish(len(keys), func(i int, m *longshore.Message) {
		m.Key = []byte(keys[i])
		m.Body = []byte(script + "\x1b[31m\u202e \xff")
		m.Headers.Set(longshore.HeaderID, fmt.Sprintf("%d%s", i, script))
		m.Headers.Set("x-"+script, "\u202e"+script)
	})
	p := s.logIn("/c/orders")
	p.shows("hang<script>")
	p.shows(`\u001b[31mred`)
	p.shows(`\u202egnp.exe`)
	js[any](p, "location.hash = '/dead-letters'")
	p.until("document.querySelectorAll('tbody tr').length === 5")
	p.press("document.querySelector('button.linkish')")
	p.until("!!document.querySelector('.letter pre, .letter .result.bad')")
	js[any](p, "location.hash = '/events'")
	p.all()
	p.shows(`\u202egnp.exe`)
	js[any](p, "location.hash = '/'")
	p.shows("orders")
	if js[bool](p, "window.hacked !== undefined || document.querySelectorAll('script').length > 1 || !!document.querySelector('main img')") {
		t.Error("a message was run as code")
	}
	if text := js[string](p, "document.documentElement.outerHTML"); strings.ContainsAny(text, "\x1b\a\u202e\u2066") {
		t.Error("a control character is on the page as it came")
	}
}
