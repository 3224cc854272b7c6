package browsertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/longshore-go/longshore/internal/demo"
)

// begun is a Show that hears of the page's address.
type begun struct{ page chan string }

func (b begun) Begin(h demo.Header)           { b.page <- h.Page }
func (begun) Event(demo.Event)                {}
func (begun) Frame(time.Duration, []demo.Row) {}
func (begun) End()                            {}

// stay runs a demo that stays, and returns the link of its page.
func stay(t *testing.T) string {
	t.Helper()
	soft, cancel := context.WithCancel(context.Background())
	hard, kill := context.WithCancel(context.Background())
	b, end := begun{make(chan string, 1)}, make(chan error, 1)
	go func() {
		_, err := demo.Run(soft, hard, demo.Config{Stay: true, Seed: 7, Show: b})
		end <- err
	}()
	t.Cleanup(func() {
		cancel()
		time.AfterFunc(5*time.Second, kill)
		if err := <-end; err != nil {
			t.Log(err)
		}
		kill()
	})
	select {
	case link := <-b.page:
		return link
	case err := <-end:
		t.Fatal(err)
		return ""
	}
}

// A person who sees the demo for the first time finds out with the mouse alone why orders
// are slow, and makes them fast again. The reason and the way out are in the window without
// scrolling, on the page that the link opens.
func TestNewUser(t *testing.T) {
	t.Parallel()
	p := openTab(t, stay(t))
	began := time.Now()
	p.sees("held back", 30*time.Second)
	p.sees("set by carol (month end: the ledger asked for less load)", 30*time.Second) // why, and who
	p.sees("Clear the limit", 5*time.Second)
	clear := time.Since(began)
	backlog := "Number(document.querySelectorAll('.tile strong')[1].textContent.replaceAll(',', ''))"
	before := js[int](p, backlog)
	p.click("Clear the limit")
	p.within(20*time.Second, "!document.body.innerText.includes('carol')")
	p.within(60*time.Second, fmt.Sprintf("%s < %d", backlog, max(before/2, 200))) // fast again
	took := time.Since(began)
	t.Logf("clear after %v, fast again after %v; the backlog was %d", clear.Round(time.Millisecond), took.Round(time.Millisecond), before)
	if took > 2*time.Minute {
		t.Errorf("it took %v", took)
	}
}

// TestScreenshots takes the pictures of the docs: SCREENSHOTS names the folder.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		t.Skip("make screenshots takes the pictures")
	}
	must(t, os.MkdirAll(dir, 0o755))
	p := openTab(t, stay(t))
	p.within(30*time.Second, "document.querySelector('h1').textContent.includes('held back')")
	<-time.After(75 * time.Second) // charts with something in them
	js[any](p, "fetch('api/actions/poison', {method: 'POST'}); 0")
	<-time.After(3 * time.Second)
	for _, mode := range []string{"light", "dark"} {
		p.do(scheme(mode))
		for _, v := range []struct {
			name, route, ready, act string
			height                  int64
		}{
			{"overview", "/", "carol", "", 520},
			{"container", "/c/rabbitmq", "Running now", "", 1000},
			{"dead-letters", "/dead-letters", "undecodable", "document.querySelector('button.linkish').click()", 760},
			{"events", "/events", "workers", "", 620},
		} {
			p.do(chromedp.EmulateViewport(1280, v.height, chromedp.EmulateScale(1)))
			js[any](p, "location.hash = '"+v.route+"'; document.activeElement.blur()")
			p.shows(v.ready)
			if v.act != "" {
				js[any](p, v.act)
				p.until("!!document.querySelector('.letter pre')")
			}
			p.take(filepath.Join(dir, v.name+"-"+mode+".webp"), 1500*time.Millisecond)
		}
		p.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(1)))
		js[any](p, "location.hash = '/'")
		p.shows("carol")
		p.take(filepath.Join(dir, "phone-"+mode+".webp"), 1500*time.Millisecond)
	}
}

// take writes what can be seen.
func (p *tab) take(path string, after time.Duration) {
	p.t.Helper()
	<-time.After(after)
	var raw []byte
	p.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		raw, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(82).Do(ctx)
		return err
	}))
	must(p.t, os.WriteFile(path, raw, 0o644)) //nolint:gosec // a picture of the docs
}
