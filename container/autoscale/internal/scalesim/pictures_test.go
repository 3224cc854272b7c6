package scalesim

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/longshore-go/longshore/container/autoscale"
)

const pictureDir = "../../../../docs/explanation/autoscaling"

// writes says whether documents are written instead of compared: make autoscale.
func writes() bool { return os.Getenv("LONGSHORE_WRITE_DOCS") != "" }

const blue, orange, grey, red = "#1f6fb4", "#d9771f", "#8a8a8a", "#b03a3a"

func traces() map[string]picture {
	byName := map[string]load{}
	for _, sc := range scenarios() {
		byName[sc.name] = sc.load
	}
	all := map[string]picture{}
	run := func(l load, p autoscale.Policy) *result { return newWorld(l, p, 1).run() }
	three := func(title string, l load) picture {
		return picture{title: title, y: "workers", length: l.length, lines: []line{
			run(l, autoscale.Adaptive{}).workers("Adaptive", blue), run(l, autoscale.Consecutive{}).workers("Consecutive", orange),
			run(l, spring{}).workers("Spring's rule", grey)}}
	}
	all["burst.svg"] = three("50 000 messages of 10 ms at once, then 1 a second; 1 to 30 workers", byName["burst, then 1 msg/s"])

	long := byName["burst, then 1 msg/s"]
	long.max, long.length = 10, 1500
	all["trickle.svg"] = three("The same for 25 minutes, 1 to 10 workers", long)

	p := three("A downstream that lets in 8 at a time (20 ms each), twice as much load; 1 to 200 workers", byName["hard cap 8, 20 ms"])
	p.lines = append(p.lines, line{name: "the downstream's 8", color: red, dash: true, at: func(float64) float64 { return 8 }})
	all["knee.svg"] = p

	l := byName["cap drops 24 to 8"]
	all["drop.svg"] = picture{title: "The downstream's places fall from 24 to 8 after 120 s", y: "workers", length: l.length, lines: []line{
		run(l, autoscale.Adaptive{}).workers("Adaptive", blue),
		{name: "places", color: red, dash: true, step: true, at: func(t float64) float64 { return float64(l.slots(t)) }}}}

	sine := byName["sine 2 to 26"]
	all["sine.svg"] = picture{title: "Load that rises and falls in ten minutes, 50 ms calls; 1 to 30 workers", y: "workers", length: sine.length, lines: []line{
		run(sine, autoscale.Adaptive{}).workers("Adaptive", blue),
		{name: "busy workers that the load needs", color: red, dash: true, at: func(t float64) float64 { return 14 - 12*math.Cos(t*2*math.Pi/600) }}}}
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
			if err := os.WriteFile(path, []byte(p.svg()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(path); err != nil || string(have) != p.svg() {
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
