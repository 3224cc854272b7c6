package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/internal/fleet"
)

// Config is the terminal that Run draws on.
type Config struct {
	In   io.Reader
	Out  io.Writer
	Env  []string
	Look Look
}

const (
	// redraw is how often the screen follows the clock.
	redraw = time.Second
	// askFor bounds an action; a drain takes as long as its handlers do.
	askFor = 2 * time.Minute
	// heldFor bounds a look at held deliveries, heldMost is how many are looked at.
	heldFor, heldMost = 3 * time.Second, 20
)

// Run shows the fleet on the terminal until the user leaves or ctx ends, and leaves the
// terminal as it was. The fleet must run.
func Run(ctx context.Context, f *fleet.Fleet, cfg Config) error {
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &program{ctx: work, fleet: f, screen: Screen{Look: cfg.Look, Now: time.Now(), Fleet: f.Snapshot()}}
	profile := colorprofile.ANSI
	if !cfg.Look.Color {
		profile = colorprofile.ASCII
	}
	_, err := tea.NewProgram(p, tea.WithContext(ctx), tea.WithInput(cfg.In), tea.WithOutput(cfg.Out), tea.WithEnvironment(cfg.Env),
		tea.WithColorProfile(profile), tea.WithFPS(20), tea.WithoutSignalHandler()).Run()
	cancel()
	p.work.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// program is the screen on a terminal.
type program struct {
	ctx    context.Context //nolint:containedctx // of the commands that bubbletea runs
	fleet  *fleet.Fleet
	screen Screen
	work   sync.WaitGroup // commands that ask instances
}

type (
	changedMsg struct{}
	clockMsg   time.Time
	noteMsg    Note
	heldMsg    Held
)

// Init waits for the fleet and the clock.
func (p *program) Init() tea.Cmd { return tea.Batch(p.changed, p.tick) }

func (p *program) tick() tea.Msg {
	t := time.NewTimer(redraw)
	defer t.Stop()
	select {
	case now := <-t.C:
		return clockMsg(now)
	case <-p.ctx.Done():
		return nil
	}
}

func (p *program) changed() tea.Msg {
	select {
	case <-p.fleet.Changed():
		return changedMsg{}
	case <-p.ctx.Done():
		return nil
	}
}

// Update follows keys, the size of the terminal, the fleet and the clock.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		p.screen.Width, p.screen.Height = m.Width, m.Height
	case changedMsg:
		p.screen.Fleet = p.fleet.Snapshot()
		return p, p.changed
	case clockMsg:
		p.screen.Now = time.Time(m)
		return p, tea.Batch(p.tick, p.look())
	case noteMsg:
		p.screen.Note = Note(m)
	case heldMsg:
		if m.Container == p.screen.Selected {
			p.screen.Held = Held(m)
		}
	case tea.PasteMsg:
		return p.press("paste", m.Content)
	case tea.KeyPressMsg:
		if m.String() == "ctrl+z" {
			return p, tea.Suspend
		}
		return p.press(m.String(), m.Text)
	}
	return p, nil
}

func (p *program) press(key, text string) (tea.Model, tea.Cmd) {
	was := p.screen.Page
	var e Effect
	p.screen, e = p.screen.Press(key, text)
	switch {
	case e.Quit:
		return p, tea.Quit
	case e.Act != nil:
		return p, p.act(*e.Act)
	case p.screen.Page == One && was != One:
		name := p.screen.Selected
		return p, tea.Batch(p.look(), p.asking(heldFor, func(ctx context.Context) tea.Msg {
			p.fleet.Past(ctx, name)
			return nil // it is in the next snapshot
		}))
	}
	return p, nil
}

// View draws the screen.
func (p *program) View() tea.View {
	v := tea.NewView(p.screen.View())
	v.AltScreen = true
	return v
}

// act asks the instances for a change, all at the same time.
func (p *program) act(a Action) tea.Cmd {
	return p.asking(askFor, func(ctx context.Context) tea.Msg {
		return noteMsg(Do(ctx, p.fleet, a))
	})
}

// asking runs what asks instances, which Run waits for.
func (p *program) asking(limit time.Duration, f func(context.Context) tea.Msg) tea.Cmd {
	p.work.Add(1)
	stop := context.AfterFunc(p.ctx, p.work.Done) // for one that never runs
	return func() tea.Msg {
		if !stop() {
			return nil
		}
		defer p.work.Done()
		ctx, cancel := context.WithTimeout(p.ctx, limit)
		defer cancel()
		return f(ctx)
	}
}

// Do asks instances for a change and says what came of it.
func Do(ctx context.Context, f *fleet.Fleet, a Action) Note {
	failures := make([]string, len(a.Instances))
	var wg sync.WaitGroup
	for i, name := range a.Instances {
		wg.Go(func() {
			err := f.Call(ctx, name, a.Method, "/api/containers/"+url.PathEscape(a.Container)+"/"+a.Verb, a.Body, nil)
			if err != nil {
				failures[i] = name + ": " + describe(err)
			}
		})
	}
	wg.Wait()
	failures = slices.DeleteFunc(failures, func(s string) bool { return s == "" })
	n := len(a.Instances) - len(failures)
	if len(failures) == 0 {
		return Note{Text: fmt.Sprintf("%s: %s on %s", clean(a.Container), a.Done, counted(n, "instance"))}
	}
	return Note{Text: fmt.Sprintf("%s: %s on %d of %s; %s", clean(a.Container), a.Done, n, counted(len(a.Instances), "instance"), clean(strings.Join(failures, "; "))), Bad: true}
}

// describe is an error as the API said it, with its help.
func describe(err error) string {
	var e *longshore.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := fmt.Sprintf("error[%s]: %v", e.Code, e.Err)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// look reads what the container of the page holds.
func (p *program) look() tea.Cmd {
	s := &p.screen
	if s.Page != One {
		return nil
	}
	name, instances := s.Selected, []string{}
	if g := s.current(); g != nil {
		for _, part := range g.Parts {
			if part.Instance.Status == fleet.Live {
				instances = append(instances, part.Instance.Name)
			}
		}
	}
	return p.asking(heldFor, func(ctx context.Context) tea.Msg { return heldMsg(heldBy(ctx, p.fleet, name, instances)) })
}

// detail is what an instance says of a container.
type detail struct {
	Total      int               `json:"total"`
	Records    []HeldRecord      `json:"records"`
	Keys       []admin.Key       `json:"keys"`
	Partitions []admin.Partition `json:"partitions"`
	Errors     []admin.Trouble   `json:"errors"`
	Consumers  *admin.Consumers  `json:"consumers"`
	Source     struct{ Address, Namespace string }
}

// heldBy asks instances for what they hold, and why.
func heldBy(ctx context.Context, f *fleet.Fleet, name string, instances []string) Held {
	parts, problems := make([]detail, len(instances)), make([]string, len(instances))
	var wg sync.WaitGroup
	for i, in := range instances {
		wg.Go(func() {
			path := "/api/containers/" + url.PathEscape(name)
			err := f.Call(ctx, in, http.MethodGet, path+"/detail", nil, &parts[i])
			if errors.Is(err, longshore.CodeNotFound) { // of a version without it
				err = f.Call(ctx, in, http.MethodGet, fmt.Sprintf("%s/inflight?limit=%d", path, heldMost), nil, &parts[i])
			}
			if err != nil {
				problems[i] = in + ": " + describe(err)
			}
			for j := range parts[i].Records {
				parts[i].Records[j].Instance = in
			}
		})
	}
	wg.Wait()
	all := Held{Container: name}
	for i, p := range parts {
		all.Total += p.Total
		all.Records, all.Keys = append(all.Records, p.Records...), append(all.Keys, p.Keys...)
		all.Partitions, all.Errors = append(all.Partitions, p.Partitions...), append(all.Errors, p.Errors...)
		if all.Consumers == nil {
			all.Consumers = p.Consumers
		}
		if p.Source.Address != "" && all.Address == "" {
			all.Address = p.Source.Address
			if n := p.Source.Namespace; n != "" {
				all.Address += ", vhost " + n
			}
		}
		if problems[i] != "" {
			all.Problem = problems[i]
		}
	}
	slices.SortStableFunc(all.Records, func(a, b HeldRecord) int { return cmp.Compare(b.Age, a.Age) })
	slices.SortStableFunc(all.Keys, func(a, b admin.Key) int { return b.Waiting - a.Waiting })
	slices.SortStableFunc(all.Errors, func(a, b admin.Trouble) int { return b.Last.Compare(a.Last) })
	return all
}
