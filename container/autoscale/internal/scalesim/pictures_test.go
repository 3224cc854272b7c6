package scalesim

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/internal/testkit/plot"
)

const pictureDir = "../../../../docs/explanation/autoscaling"

// writes says whether documents are written instead of compared: make autoscale.
func writes() bool { return os.Getenv("LONGSHORE_WRITE_DOCS") != "" }

func traces() map[string]plot.Picture {
	byName := map[string]load{}
	for _, sc := range scenarios() {
		byName[sc.name] = sc.load
	}
	all := map[string]plot.Picture{}
	run := func(l load, p autoscale.Policy) *result { return newWorld(l, p, 1).run() }
	three := func(title string, l load) plot.Picture {
		return plot.Picture{Title: title, Y: "workers", Length: l.length, Lines: []plot.Line{
			run(l, autoscale.Adaptive{}).workers("Adaptive", plot.Blue), run(l, autoscale.Consecutive{}).workers("Consecutive", plot.Orange),
			run(l, spring{}).workers("Spring's rule", plot.Grey)}}
	}
	all["burst.svg"] = three("50 000 messages of 10 ms at once, then 1 a second; 1 to 30 workers", byName["burst, then 1 msg/s"])

	long := byName["burst, then 1 msg/s"]
	long.max, long.length = 10, 1500
	all["trickle.svg"] = three("The same for 25 minutes, 1 to 10 workers", long)

	p := three("A downstream that lets in 8 at a time (20 ms each), twice as much load; 1 to 200 workers", byName["hard cap 8, 20 ms"])
	p.Lines = append(p.Lines, plot.Line{Name: "the downstream's 8", Color: plot.Red, Dash: true, At: func(float64) float64 { return 8 }})
	all["knee.svg"] = p

	l := byName["cap drops 24 to 8"]
	all["drop.svg"] = plot.Picture{Title: "The downstream's places fall from 24 to 8 after 120 s", Y: "workers", Length: l.length, Lines: []plot.Line{
		run(l, autoscale.Adaptive{}).workers("Adaptive", plot.Blue),
		{Name: "places", Color: plot.Red, Dash: true, Step: true, At: func(t float64) float64 { return float64(l.slots(t)) }}}}

	sine := byName["sine 2 to 26"]
	all["sine.svg"] = plot.Picture{Title: "Load that rises and falls in ten minutes, 50 ms calls; 1 to 30 workers", Y: "workers", Length: sine.length, Lines: []plot.Line{
		run(sine, autoscale.Adaptive{}).workers("Adaptive", plot.Blue),
		{Name: "busy workers that the load needs", Color: plot.Red, Dash: true, At: func(t float64) float64 { return 14 - 12*math.Cos(t*2*math.Pi/600) }}}}
	return all
}

// The pictures of the documentation are these runs. The bytes depend on how the
// processor rounds, so they are compared where they were made; not with the race
// detector, which makes a minute of it.
func TestPicturesAreTheseRuns(t *testing.T) {
	if runtime.GOARCH != "amd64" || raced {
		return
	}
	for name, p := range traces() {
		path := filepath.Join(pictureDir, name)
		if writes() {
			if err := os.MkdirAll(pictureDir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(p.SVG()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(path); err != nil || string(have) != p.SVG() {
			t.Errorf("%s is not what the simulation gives: run make autoscale (%v)", path, err)
		}
	}
}

func TestSameSeedSameReasons(t *testing.T) {
	l := scenarios()[0].load
	a, b := newWorld(l, autoscale.Adaptive{}, 7).run(), newWorld(l, autoscale.Adaptive{}, 7).run()
	if len(a.changes) == 0 || len(a.changes) != len(b.changes) {
		t.Fatalf("%d and %d changes", len(a.changes), len(b.changes))
	}
	for i := range a.changes {
		if a.changes[i] != b.changes[i] || a.changes[i].Reason == "" {
			t.Errorf("%+v and %+v", a.changes[i], b.changes[i])
		}
	}
}
