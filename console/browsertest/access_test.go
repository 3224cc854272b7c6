package browsertest

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
)

const nameless = `[...document.querySelectorAll('button, a, input, select, canvas[role=img], progress, table, dialog')].filter((e) => e.getClientRects().length)
  .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length || e.closest('label'))).map((e) => e.outerHTML.slice(0, 120))`

// The contrast of every text that can be seen, as WCAG counts it; what is off does not count.
const faint = `(() => {
  const rgb = (c) => { const g = document.createElement('canvas').getContext('2d', {willReadFrequently: true}); g.fillStyle = c; g.fillRect(0, 0, 1, 1); return [...g.getImageData(0, 0, 1, 1).data]; };
  const lum = ([r, g, b]) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const back = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
  const out = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; n = walk.nextNode();) {
    const e = n.parentElement;
    if (!n.textContent.trim() || !e.getClientRects().length || e.closest('button:disabled, option, .tip, noscript, .aria, .skip')) continue;
    const a = lum(rgb(getComputedStyle(e).color)), b = lum(back(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) out.push(n.textContent.trim().slice(0, 40) + ' ' + ratio.toFixed(2));
  }
  return out;
})()`

// all chooses all kinds of events.
func (p *tab) all() {
	p.t.Helper()
	p.until("!!document.querySelector('select[aria-label=Kind]')")
	js[any](p, "{const k = document.querySelector('select[aria-label=Kind]'); k.value = ''; k.dispatchEvent(new Event('change'))}")
}

// Every control has a name, every text enough contrast, nothing is wider than a phone: each
// view, light and dark.
func TestAccessible(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ context.Context, d *longshore.Delivery) error {
		if d.Attempt > 0 && strings.HasPrefix(string(d.Key), "bad") {
			return errBank
		}
		return nil
	})
	s.bury(3, nil)
	s.publish(30, func(i int, m *longshore.Message) {
		if i%3 == 0 {
			m.Key = []byte("bad" + m.Headers.String(longshore.HeaderID))
		}
	})
	p := s.logIn("")
	for _, mode := range []string{"light", "dark"} {
		p.do(scheme(mode))
		for view, ready := range map[string]string{"/": "orders", "/c/orders": "Messages per second", "/dead-letters": "d-2", "/events": "dead-lettered"} {
			p.do(chromedp.EmulateViewport(1360, 900))
			js[any](p, "location.hash = '"+view+"'")
			if view == "/events" {
				p.all()
			}
			p.shows(ready)
			if list := js[[]string](p, nameless); len(list) > 0 {
				t.Errorf("%s, %s: without a name: %q", view, mode, list)
			}
			if list := js[[]string](p, faint); len(list) > 0 {
				t.Errorf("%s, %s: too little contrast: %q", view, mode, list)
			}
			p.do(chromedp.EmulateViewport(390, 844))
			if w := js[int](p, "document.documentElement.scrollWidth"); w > 390 {
				t.Errorf("%s needs %d pixels", view, w)
			}
		}
	}
}

// With the keyboard alone: each stop is visible, in the order of the page, and a container
// is found, paused and resumed.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := serve(t, done)
	p := s.logIn("")
	p.shows("orders")
	walk := func(want string, most int) {
		t.Helper()
		var seen []string
		for range most {
			p.do(chromedp.KeyEvent(kb.Tab))
			at := js[string](p, `(() => { const e = document.activeElement, s = getComputedStyle(e); return (e.getAttribute('aria-label') || e.textContent || e.placeholder || e.tagName).trim() + (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1 ? '' : ' WITHOUT OUTLINE'); })()`)
			seen = append(seen, at)
			if strings.HasSuffix(at, "WITHOUT OUTLINE") {
				t.Errorf("the focus cannot be seen at %q", at)
			}
			if strings.HasPrefix(at, want) {
				return
			}
		}
		t.Fatalf("%q is not reached: %q", want, seen)
	}
	walk("Skip to the content", 1)
	walk("Dead letters", 4)
	walk("Filter containers", 12)
	walk("orders", 4)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("document.querySelector('h1').textContent === 'orders'")
	p.until("[...document.querySelectorAll('button')].some((b) => b.textContent === 'Pause' && !b.disabled)")
	js[any](p, "document.querySelector('#main').focus()")
	walk("Pause", 4)
	p.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent("tea"))
	walk("Pause now", 2)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.shows("paused by anna (tea)")
	p.until("document.querySelector('#said').textContent.includes('orders is paused')")
	if s.c.State() != container.StatePaused {
		t.Error("it is not paused")
	}
	p.do(chromedp.KeyEvent("e"))
	p.until("document.querySelector('h1').textContent === 'Events'")
	p.do(chromedp.KeyEvent("/"))
	if at := js[string](p, "document.activeElement.getAttribute('aria-label')"); at != "Find" {
		t.Errorf("/ goes to %q", at)
	}
}
