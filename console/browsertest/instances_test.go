package browsertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/fleet"
	"github.com/longshore-go/longshore/internal/gateway"
	"github.com/longshore-go/longshore/transport"
)

// The page of several instances has a row for each container of each, totals, one column for
// each instance and what differs. A button acts on its own instance, and one that does not
// answer is shown as such.
func TestManyInstances(t *testing.T) {
	t.Parallel()
	one, two := serve(t, done), serve(t, done)
	one.limit.SetPermits(5)
	var targets []fleet.Target
	for i, s := range []*service{one, two} {
		targets = append(targets, fleet.Target{Name: fmt.Sprint("shop-", i+1), Base: "http://" + s.a.Addr(), Token: transport.Static(token)})
	}
	g := gateway.New(targets, fleet.Config{})
	a, err := admin.New(admin.Config{Addr: "127.0.0.1:0", Instance: "console", Around: g.Around, Operators: map[string]transport.Secret{"kim": transport.Static(token)}, Logger: zap.NewNop()})
	must(t, err)
	must(t, a.Start(t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		stop, end := context.WithTimeout(context.Background(), 5*time.Second)
		defer end()
		_ = a.Stop(stop)
	})

	p := openTab(t, a.Link(t.Context()))
	p.until("document.querySelector('.link.live') && document.querySelector('#who').innerText.includes('kim')")
	p.shows("2 instances")
	p.until("document.querySelectorAll('main .item').length === 2")
	p.click("Instances")
	p.shows("permits: 5 on shop-1")
	p.until("[...document.querySelectorAll('main thead th')].map((e) => e.innerText.trim().split(/\\s/)[0]).join() === 'Container,Total,shop-1,shop-2'")

	js[any](p, "location.hash = '/'")
	p.until("[...document.querySelectorAll('main a')].some((e) => e.href.includes('shop-2'))")
	p.press("[...document.querySelectorAll('main a')].find((e) => e.href.includes('shop-2'))")
	p.click("Pause")
	p.do(chromedp.SendKeys("input[placeholder=reason]", "lunch"))
	p.click("Pause now")
	deadline := time.Now().Add(10 * time.Second)
	for two.c.State() != container.StatePaused && time.Now().Before(deadline) {
		<-time.After(50 * time.Millisecond)
	}
	if two.c.State() != container.StatePaused || one.c.State() == container.StatePaused {
		t.Errorf("shop-1 is %s, shop-2 is %s", one.c.State(), two.c.State())
	}

	two.close()
	js[any](p, "location.hash = '/instances'")
	p.shows("no answer")
	p.mu.Lock()
	p.wrong = nil // the browser reports the stream of an instance that has gone
	p.mu.Unlock()
	two.open()
}
