package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal notes what happened in which order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, s)
}

type part struct {
	journal            *journal
	name               string
	phase              int
	budget             time.Duration
	startTime, stopFor time.Duration
	startErr, stopErr  error
	deaf               bool // Stop does not obey its context
}

func (p *part) Name() string              { return p.name }
func (p *part) Phase() int                { return p.phase }
func (p *part) StopBudget() time.Duration { return p.budget }
func (p *part) DrainReport() string       { return "drained, report of " + p.name }

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *part) Start(ctx context.Context) error {
	if err := errors.Join(wait(ctx, p.startTime), p.startErr); err != nil {
		p.journal.note("failed " + p.name)
		return err
	}
	p.journal.note("start " + p.name)
	return nil
}

func (p *part) Stop(ctx context.Context) error {
	if p.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	err := wait(ctx, p.stopFor)
	p.journal.note("stop " + p.name)
	return errors.Join(err, p.stopErr)
}

func TestContainersAreLastUpAndFirstDown(t *testing.T) {
	j := &journal{}
	m, err := New(Config{}, &part{journal: j, name: "orders", phase: PhaseContainers, budget: time.Second},
		&part{journal: j, name: "db", phase: PhasePools}, &part{journal: j, name: "pub", phase: PhasePublishers})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Start(t.Context()), m.Stop(t.Context()), m.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	want := []string{"start db", "start pub", "start orders", "stop orders", "stop pub", "stop db"}
	if !slices.Equal(j.lines, want) {
		t.Errorf("got %v\nwant %v", j.lines, want)
	}
}

// F-A07
func TestFailingStartUndoesWhatHadStarted(t *testing.T) {
	j := &journal{}
	boom := errors.New("boom")
	m, err := New(Config{}, &part{journal: j, name: "db"}, &part{journal: j, name: "pub", phase: 1}, &part{journal: j, name: "bad", phase: 1, startErr: boom},
		&part{journal: j, name: "orders", phase: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); !errors.Is(err, boom) || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("error %v must name the component", err)
	}
	if slices.Contains(j.lines, "start orders") || slices.Contains(j.lines, "stop bad") {
		t.Errorf("%v", j.lines)
	}
	if got := j.lines[len(j.lines)-2:]; !slices.Equal(got, []string{"stop pub", "stop db"}) {
		t.Errorf("undone: %v", j.lines)
	}
	if err := m.Stop(t.Context()); err != nil || len(j.lines) != 5 {
		t.Errorf("stop after a failed start: %v, %v", err, j.lines)
	}
}

func TestSlowPhaseDoesNotSkipTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		m, err := New(Config{StopTimeout: 10 * time.Second},
			&part{journal: j, name: "db", budget: time.Second}, &part{journal: j, name: "orders", phase: 9, budget: 2 * time.Second, stopFor: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := m.Stop(context.Background()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stop: %v", err)
		}
		if took := time.Since(begin); took != 9*time.Second {
			t.Errorf("took %v, want StopTimeout less what db may need", took)
		}
		if j.lines[len(j.lines)-1] != "stop db" {
			t.Errorf("db was not stopped: %v", j.lines)
		}
	})
}

// One that ignores its context is left behind: the pools are closed all the same.
func TestDeafComponentDoesNotKeepTheOthersFromStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		m, err := New(Config{StopTimeout: 10 * time.Second}, &part{journal: j, name: "db", budget: time.Second},
			&part{journal: j, name: "orders", phase: 9, budget: 2 * time.Second, stopFor: time.Hour, deaf: true}, &part{journal: j, name: "invoices", phase: 9, budget: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := m.Stop(context.Background()); !errors.Is(err, errDeaf) || !strings.Contains(err.Error(), `"orders"`) || strings.Contains(err.Error(), "invoices") {
			t.Errorf("stop: %v", err)
		}
		j.mu.Lock()
		if took := time.Since(begin); took > 11*time.Second || j.lines[len(j.lines)-1] != "stop db" {
			t.Errorf("after %v: %v", took, j.lines)
		}
		j.mu.Unlock()
		<-time.After(2 * time.Hour) // it returns at last
	})
}

func TestBudgetIsCheckedAtConstruction(t *testing.T) {
	j := &journal{}
	_, err := New(Config{StopTimeout: 40 * time.Second}, &part{journal: j, name: "orders", phase: 1000, budget: 47 * time.Second})
	if !errors.Is(err, longshore.CodeDrainBudget) || !strings.Contains(err.Error(), "50s or more") {
		t.Errorf("got %v", err)
	}
	if _, err := New(Config{}, &part{journal: j, name: "a"}, &part{journal: j, name: "a"}); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("two alike: %v", err)
	}
	if _, err := New(Config{}, &part{journal: j, name: "orders", budget: 22 * time.Second}); err != nil {
		t.Errorf("a container with default settings must fit: %v", err)
	}
	closes := func(name string, phase int) Component {
		return Hook(name, phase, nil, func(context.Context) error { return nil })
	}
	parts := []Component{&part{journal: j, name: "orders", phase: PhaseContainers, budget: 22 * time.Second},
		closes("admin", PhaseAdmin), closes("publisher", PhasePublishers), closes("pool", PhasePools)}
	if _, err := New(Config{}, parts...); err != nil {
		t.Errorf("and with it an admin server, a publisher and a pool: %v", err)
	}
	if got := Budget(append(parts, closes("early", 50))...); got != 26*time.Second {
		t.Errorf("four phases that only close need more than the reserve: %v", got)
	}
}

func TestMainReportsAndExits(t *testing.T) {
	for name, tc := range map[string]struct {
		part    part
		signals []os.Signal
		code    int
		text    string
		apart   time.Duration // between signals; 0: they come together
	}{
		"clean drain":         {part{}, []os.Signal{syscall.SIGTERM}, 0, "orders: drained, report of orders", sameStop},
		"something left":      {part{stopErr: errors.New("abandoned 3")}, []os.Signal{os.Interrupt}, 1, "abandoned 3", sameStop},
		"start failed":        {part{startErr: errors.New("no such queue")}, nil, 1, "no such queue", sameStop},
		"second signal":       {part{stopFor: time.Hour}, []os.Signal{os.Interrupt, os.Interrupt}, 130, "orders: drained, report of orders", sameStop},
		"third signal":        {part{stopFor: time.Hour, deaf: true}, []os.Signal{os.Interrupt, os.Interrupt, os.Interrupt}, 130, "", sameStop},
		"deaf":                {part{stopFor: time.Hour, deaf: true}, []os.Signal{os.Interrupt, os.Interrupt}, 130, "does not return", sameStop},
		"signal at start":     {part{startTime: time.Hour}, []os.Signal{os.Interrupt}, 0, "", sameStop},
		"second signal TERM":  {part{stopFor: time.Hour}, []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, 143, "", sameStop},
		"child and group":     {part{stopFor: 5 * time.Second}, []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, 0, "orders: drained, report of orders", 0},
		"just within":         {part{stopFor: 5 * time.Second}, []os.Signal{os.Interrupt, os.Interrupt}, 0, "", sameStop - 1},
		"the second, doubled": {part{stopFor: time.Hour}, []os.Signal{os.Interrupt, os.Interrupt, os.Interrupt}, 130, "", sameStop / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := tc.part
				p.journal, p.name, p.phase = &journal{}, "orders", PhaseContainers
				signals := make(chan os.Signal)
				go func() {
					for _, s := range tc.signals {
						synctest.Wait()
						signals <- s
						<-time.After(tc.apart)
					}
				}()
				var out bytes.Buffer
				if code := run(signals, &out, []Component{&p}); code != tc.code || !strings.Contains(out.String(), tc.text) {
					t.Errorf("exit %d, output %q", code, out.String())
				}
				<-time.After(2 * time.Hour) // where a process would have exited, the stop that it left goes on
			})
		})
	}
}
