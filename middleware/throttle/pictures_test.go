package throttle_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/plot"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport/memory"
)

const pictureDir = "../../docs/how-to/throttle-a-fleet"

// draw writes the picture with make autoscale, else sees that it is there. Its bytes
// differ from run to run, since instances rise at moments of their own; what it shows is
// asserted where it is measured.
func draw(t *testing.T, name string, p plot.Picture) {
	t.Helper()
	path := filepath.Join(pictureDir, name)
	if os.Getenv("LONGSHORE_WRITE_DOCS") == "" {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		return
	}
	if err := os.MkdirAll(pictureDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(p.SVG()), 0o644); err != nil {
		t.Fatal(err)
	}
}

const frame = 100 * time.Millisecond

// film is what was seen frame by frame.
type film []float64

func (f film) line(name, color string, dash bool) plot.Line {
	return plot.Line{Name: name, Color: color, Dash: dash, Step: true, At: func(t float64) float64 {
		return f[min(int(t/frame.Seconds()), len(f)-1)]
	}}
}

func slow(g *gauge, d time.Duration) longshore.Handler {
	return handle(func(context.Context, *longshore.Delivery) error {
		g.enter()
		defer g.leave()
		<-time.After(d)
		return nil
	})
}

// Permits of one container go 20 → 5 → 15 → 0 → 15 while it works: never more run than
// may, but for those that ran before.
func TestPictureOfOneContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(1200)...)
		limit := throttle.NewPermits(20)
		var g gauge
		c := start(t, b.Queue("q", memory.QueueConfig{}), slow(&g, 733*time.Millisecond), container.Config{Throttle: limit, Workers: container.Workers{Min: 30, Max: 30}})
		var runs, may film
		at := map[int]int{100: 5, 200: 15, 300: 0, 400: 15}
		begun := 0                  // frame of the last change
		wait(37 * time.Millisecond) // looks are not at the moments of ends
		for i := range 500 {
			if n, ok := at[i]; ok {
				limit.SetPermits(n)
				begun = i
			}
			wait(frame)
			now, _, _ := g.read()
			n, _ := limit.Limits()
			runs, may = append(runs, float64(now)), append(may, float64(n))
			if i-begun > 8 && now != n { // the calls of before take 7 frames
				t.Errorf("%v: %d run of %d permits", time.Duration(i)*frame, now, n)
			}
		}
		draw(t, "permits.svg", plot.Picture{Title: "One container under load, calls of 0.7 s: permits 20, 5, 15, 0, 15", Y: "calls", Length: 50,
			Lines: []plot.Line{runs.line("calls that run", plot.Blue, false), may.line("permits", plot.Red, true)}})
		stop(t, c)
	})
}

// Three instances share a total; a fourth comes and one goes; a hold of 10 s ends by
// itself. The downstream never sees more than the total.
func TestPictureOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(4000)...)
		src := b.Broadcast("control", memory.BroadcastConfig{Retain: true})
		var g gauge
		type one struct {
			*instance
			c     *container.ListenerContainer
			share film
		}
		var all []*one
		begin := func(name string) {
			in := &one{instance: join(t, src, name, throttle.FleetConfig{})}
			in.c = start(t, b.Queue("q", memory.QueueConfig{}), slow(&g, 233*time.Millisecond), container.Config{Throttle: in.limit, Workers: container.Workers{Min: 20, Max: 20}})
			all = append(all, in)
		}
		for _, name := range []string{"a", "b", "c"} {
			begin(name)
		}
		end := func(in *one) {
			stop(t, in.c)
			if err := in.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		total := 60
		var runs, may film
		acts := map[int]func(){
			50: func() {
				total = 12
				issue(t, all[0].instance, throttle.Directive{Permits: ptr(12), Share: throttle.Total})
			},
			150: func() { begin("d") },
			250: func() { end(all[1]) },
			350: func() {
				issue(t, all[0].instance, throttle.Directive{Permits: ptr(0), ExpiresAt: time.Now().Add(10 * time.Second), Target: throttle.Target{Container: "orders"}})
				total = 0
			},
			450: func() { total = 12 }, // what was said to all is in force again, step by step
		}
		wait(37 * time.Millisecond)
		for i := range 600 {
			if f := acts[i]; f != nil {
				f()
			}
			wait(frame)
			now, _, _ := g.read()
			runs, may = append(runs, float64(now)), append(may, float64(total))
			for k, in := range all {
				n := in.permits()
				if k == 1 && i >= 250 {
					n = 0
				}
				in.share = append(in.share, float64(n))
			}
			// Frame 449 is the instant at which the limit of ten seconds expires: both answers are right.
			if settled := i > 55 && i < 350 || i > 355 && i != 449; settled && now > total {
				t.Errorf("%v: %d run of %d in all", time.Duration(i)*frame, now, total)
			}
		}
		if now, _, _ := g.read(); now != 12 {
			t.Errorf("%d run of 12 in all at the end", now)
		}
		lines := []plot.Line{runs.line("calls at the downstream", plot.Blue, false), may.line("in all", plot.Red, true)}
		for k, color := range []string{plot.Grey, plot.Orange} {
			lines = append(lines, all[k].share.line(fmt.Sprintf("permits of %c", 'a'+rune(k)), color, false))
		}
		draw(t, "fleet.svg", plot.Picture{Title: "Three instances share a total of 12; a fourth comes, b goes, then a hold of 10 s", Y: "calls", Length: 60, Lines: lines})
		for k, in := range all {
			if k != 1 {
				end(in)
			}
		}
	})
}
