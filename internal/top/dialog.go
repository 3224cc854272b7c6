package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore/internal/edit"
	"github.com/longshore-go/longshore/internal/fleet"
)

// DialogKind is what the user is asked for.
type DialogKind uint8

// The kinds.
const (
	NoDialog DialogKind = iota
	Filtering
	Pausing
	Resuming
	Throttling
	Clearing
	Scaling
	Draining
	Reconnecting
	RetryingRecord
	DeadLetteringRecord
	ReleasingRecord
)

// Dialog is a question with fields to fill in.
type Dialog struct {
	Kind DialogKind
	// Container and Instances are what the answer is for: those on the screen when the
	// question came, whatever is sorted differently since.
	Container string
	Instances []string
	Fields    []Field
	At        int // the field that is written into
	// Record is the delivery that the question is about, Runs that its handler does.
	Record  string
	Runs    bool
	Problem string
}

// Field is a line of text that is being written.
type Field struct{ Label, Text, Hint string }

// longestField bounds what can be typed.
const longestField = 200

// Action is a change to ask instances for.
type Action struct {
	Container string
	Instances []string
	Method    string
	Verb      string // the end of the path
	Body      map[string]any
	// Done is said when all have obeyed.
	Done string
}

// ask opens the question of a key about the current container.
func (s Screen) ask(key string) Screen {
	g := s.current()
	kinds := map[string]DialogKind{"p": Pausing, "r": Resuming, "t": Throttling, "c": Clearing, "w": Scaling, "D": Draining, "R": Reconnecting,
		"n": RetryingRecord, "x": DeadLetteringRecord, "b": ReleasingRecord}
	kind, known := kinds[key]
	if !known || s.Page == Help {
		return s
	}
	if _, is := recordVerbs()[kind]; is {
		return s.askRecord(kind)
	}
	if g == nil {
		s.Note = Note{"no container is selected", true}
		return s
	}
	d := Dialog{Kind: kind, Container: g.Name}
	for _, p := range g.Parts {
		if p.Instance.Status == fleet.Live {
			d.Instances = append(d.Instances, p.Instance.Name)
		}
	}
	if len(d.Instances) == 0 {
		s.Note = Note{"no instance with " + clean(g.Name) + " answers", true}
		return s
	}
	why := Field{Label: "reason"}
	first := g.Parts[slices.IndexFunc(g.Parts, func(p fleet.Part) bool { return p.Instance.Status == fleet.Live })]
	switch kind {
	case Throttling:
		permits := ""
		if first.Throttle != nil && first.Throttle.Permits >= 0 {
			permits = strconv.Itoa(first.Throttle.Permits)
		}
		d.Fields = []Field{{Label: "permits", Text: permits, Hint: "0 holds everything"}, {Label: "for", Text: "10m", Hint: "empty: until cleared"}, why}
	case Scaling:
		d.Fields = []Field{{Label: "min", Text: strconv.Itoa(first.Workers.Min)}, {Label: "max", Text: strconv.Itoa(first.Workers.Max)}, why}
	case Draining:
		d.Fields = []Field{{Label: "type its name"}, why}
	default:
		d.Fields = []Field{why}
	}
	s.Dialog, s.Selected = d, g.Name
	return s
}

// answer is a key while the user is asked for something.
func (s Screen) answer(key, text string) (Screen, Effect) {
	d := s.Dialog
	d.Fields = slices.Clone(d.Fields) // the screen before keeps its own
	f := &d.Fields[d.At]
	switch key {
	case "esc":
		if d.Kind == Filtering {
			s.Filter = ""
		}
		s.Dialog = Dialog{}
		return s, Effect{}
	case "enter":
		if d.Kind == Filtering {
			s.Dialog = Dialog{}
			return s, Effect{}
		}
		act, problem := d.action()
		if problem != "" {
			d.Problem = problem
			s.Dialog = d
			return s, Effect{}
		}
		s.Dialog, s.Note = Dialog{}, Note{Text: "asking " + counted(len(d.Instances), "instance") + " …"}
		return s, Effect{Act: act}
	case "tab", "down":
		d.At = (d.At + 1) % len(d.Fields)
	case "shift+tab", "up":
		d.At = (d.At + len(d.Fields) - 1) % len(d.Fields)
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(f.Text)
		f.Text = f.Text[:len(f.Text)-n]
	case "ctrl+u":
		f.Text = ""
	default:
		for _, r := range text {
			if len(f.Text) < longestField && r >= ' ' && r != 0x7f {
				f.Text += string(r)
			}
		}
	}
	d.Problem = ""
	s.Dialog = d
	if d.Kind == Filtering {
		s.Filter = d.Fields[0].Text
	}
	return s, Effect{}
}

// action is the change that the answers ask for, or the problem with them.
func (d *Dialog) action() (*Action, string) {
	of := func(label string) string {
		for _, f := range d.Fields {
			if f.Label == label {
				return strings.TrimSpace(f.Text)
			}
		}
		return ""
	}
	a := &Action{Container: d.Container, Instances: d.Instances, Method: "POST", Body: map[string]any{}}
	if why := of("reason"); why != "" {
		a.Body["reason"] = why
	}
	if v, is := recordVerbs()[d.Kind]; is {
		a.Verb, a.Body["record"], a.Done = v.path, d.Record, clean(d.Record)+" "+v.done
		if d.Runs {
			a.Body["interrupt"] = true
		}
		return a, ""
	}
	switch d.Kind {
	case Reconnecting:
		a.Verb, a.Done = "reconnect", "trying to connect"
	case Pausing:
		a.Verb, a.Done = "pause", "paused"
	case Resuming:
		a.Verb, a.Done = "resume", "resumed"
	case Draining:
		if of("type its name") != d.Container {
			return nil, "that is not its name"
		}
		a.Verb, a.Done = "drain", "drained"
	case Clearing:
		a.Method, a.Verb, a.Body["clear"], a.Done = "PUT", "throttle", true, "throttle cleared"
	case Scaling:
		lo, err1 := strconv.Atoi(of("min"))
		hi, err2 := strconv.Atoi(of("max"))
		if err1 != nil || err2 != nil || lo < 1 || hi < lo {
			return nil, "min and max are numbers from 1, and min is not above max"
		}
		a.Method, a.Verb, a.Body["min"], a.Body["max"], a.Done = "PUT", "workers", lo, hi, fmt.Sprintf("workers %d to %d", lo, hi)
	case Throttling:
		n, err := strconv.Atoi(of("permits"))
		if err != nil || n < 0 {
			return nil, "permits is a number from 0"
		}
		a.Method, a.Verb, a.Body["permits"], a.Done = "PUT", "throttle", n, fmt.Sprintf("permits %d", n)
		if hold := of("for"); hold != "" {
			if t, err := time.ParseDuration(hold); err != nil || t <= 0 {
				return nil, fmt.Sprintf("%q is not a time; %s", clean(hold), edit.TimeHint(hold))
			}
			a.Body["for"] = hold
			a.Done += " for " + hold
		}
	}
	return a, ""
}

// dialog draws the question in the place of the keys.
func (s *Screen) dialog() []string {
	d := &s.Dialog
	if d.Kind == Filtering {
		return []string{s.Look.cut("/"+clean(d.Fields[0].Text)+"_", s.Width), s.Look.paint(faint, s.Look.cut("enter keep  esc show all", s.Width))}
	}
	what := map[DialogKind]string{Pausing: "Pause", Resuming: "Resume", Throttling: "Throttle", Clearing: "Clear the throttle of", Scaling: "Set the workers of", Draining: "Drain", Reconnecting: "Try to connect now:"}[d.Kind]
	on := counted(len(d.Instances), "instance")
	if len(d.Instances) == 1 {
		on = clean(d.Instances[0])
	}
	title := fmt.Sprintf("%s %s on %s?", what, clean(d.Container), on)
	if d.Kind == Draining {
		title += " It stays stopped until the service is started again."
	}
	if v, is := recordVerbs()[d.Kind]; is {
		title = d.recordTitle(v)
	}
	var lines []string
	for _, l := range s.Look.wrap(title, s.Width, 3) {
		lines = append(lines, s.Look.paint(strong, l))
	}
	for i, f := range d.Fields {
		mark, text := "  ", clean(f.Text)
		if i == d.At {
			mark, text = "› ", text+"_"
		}
		line := s.Look.fit(mark+f.Label, 17, false) + text
		if f.Hint != "" {
			line += "   (" + f.Hint + ")"
		}
		lines = append(lines, s.Look.cut(line, s.Width))
	}
	if d.Problem != "" {
		lines = append(lines, s.Look.paint(bad, s.Look.cut("not possible: "+clean(d.Problem), s.Width)))
	}
	keys := "enter do it  esc cancel"
	if len(d.Fields) > 1 {
		keys = "tab next field  " + keys
	}
	return append(lines, s.Look.paint(faint, s.Look.cut(keys, s.Width)))
}
