package lifecycle

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
)

// F-A07: a component that ignores its context does not keep a start that failed from
// being undone: what had started would go on consuming in a program that says it did not start.
func TestDeafStartIsLeftBehindAndTheOthersUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		deaf := Hook("deaf", 1, func(context.Context) error { <-time.After(time.Hour); return nil },
			func(context.Context) error { j.note("stop deaf"); return nil })
		m, err := New(Config{}, &part{journal: j, name: "db"}, deaf, &part{journal: j, name: "pub", phase: 1}, &part{journal: j, name: "orders", phase: 2})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		if err := m.Start(ctx); !errors.Is(err, errDeaf) || !strings.Contains(err.Error(), `"deaf"`) || strings.Contains(err.Error(), "pub") {
			t.Errorf("start: %v", err)
		}
		if took := time.Since(begin); took > 7*time.Second {
			t.Errorf("it took %v", took)
		}
		if undone := j.lines[2:]; undone[2] != "stop db" || !slices.Contains(undone, "stop pub") || !slices.Contains(undone, "stop deaf") {
			t.Errorf("undone: %v", j.lines)
		}
		<-time.After(2 * time.Hour) // it returns at last
	})
}

// F-A07: a stop during a start ends it, within its own time, and nothing is left.
func TestStopDuringAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		m, err := New(Config{}, &part{journal: j, name: "db"}, &part{journal: j, name: "orders", phase: 1, startTime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan error, 1)
		go func() { started <- m.Start(context.Background()) }()
		synctest.Wait()
		begin := time.Now()
		if err := m.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
		if err := <-started; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `"orders"`) {
			t.Errorf("start: %v", err)
		}
		if took := time.Since(begin); took > time.Second || !slices.Equal(j.lines, []string{"start db", "failed orders", "stop db"}) {
			t.Errorf("after %v: %v", took, j.lines)
		}
		if err := m.Stop(context.Background()); err != nil {
			t.Errorf("second stop: %v", err)
		}
	})
}

// F-A07: a panic in a component is its error, and the others are put in order.
func TestPanicOfAComponent(t *testing.T) {
	panics := func(context.Context) error { panic("nil map") }
	wants := func(t *testing.T, err error, lines []string, last string) {
		t.Helper()
		if !errors.Is(err, longshore.CodePanic) || !strings.Contains(err.Error(), `"bad"`) || lines[len(lines)-1] != last {
			t.Errorf("%v, %v", err, lines)
		}
	}
	for _, hook := range []Component{Hook("bad", 1, panics, nil), Hook("bad", 1, nil, panics)} {
		j := &journal{}
		m, err := New(Config{}, &part{journal: j, name: "db"}, hook)
		if err != nil {
			t.Fatal(err)
		}
		if err = m.Start(t.Context()); err == nil {
			err = m.Stop(t.Context())
		}
		wants(t, err, j.lines, "stop db")
	}
}

// F-A07: a component whose Start and Stop both ignore their contexts, within fx's limits,
// however short: fx waits for no hook beyond them, and whatever is not done then is not done.
func TestDeafAtBothEndsKeepsToTheTimeThatThereIs(t *testing.T) {
	for _, limit := range []time.Duration{200 * time.Millisecond, time.Second, 4 * time.Second, 15 * time.Second, time.Minute} {
		for _, end := range []string{"start", "stop"} {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{}
				forever := make(chan struct{})
				deafStart := func(context.Context) error { <-forever; return nil }
				if end == "stop" {
					deafStart = nil
				}
				m, err := New(Config{}, &part{journal: j, name: "db"}, &part{journal: j, name: "pub", phase: PhasePublishers},
					Hook("deaf", PhaseContainers, deafStart, func(context.Context) error { <-forever; return nil }))
				if err != nil {
					t.Fatal(err)
				}
				hook := &Hosted{m: m, notify: func(chan<- os.Signal) func() { return func() {} }}
				call := hook.Start
				if end == "stop" {
					call = hook.Stop
					if err := m.Start(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				begin := time.Now()
				if err := call(ctx); !errors.Is(err, errDeaf) || !strings.Contains(err.Error(), end+` "deaf"`) {
					t.Errorf("%s within %v: %v", end, limit, err)
				}
				if took := time.Since(begin); took >= limit {
					t.Errorf("%s within %v took %v", end, limit, took)
				}
				if undone := j.lines[2:]; !slices.Equal(undone, []string{"stop pub", "stop db"}) {
					t.Errorf("%s within %v: %v", end, limit, j.lines)
				}
				close(forever)
				synctest.Wait()
			})
		}
	}
}
