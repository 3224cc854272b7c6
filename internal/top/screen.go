package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/fleet"
)

// Page is what the screen shows.
type Page uint8

// The pages.
const (
	Overview Page = iota
	One           // one container
	Help
)

// Screen is everything that is shown.
type Screen struct {
	Width, Height int
	Look          Look
	Now           time.Time
	Fleet         fleet.Snapshot
	Page          Page
	// Selected is the name of a container; on the page One it is the container of the page.
	Selected string
	// Scope is the instance that is shown and steered; "": all.
	Scope string
	// Filter leaves containers out whose name or source does not have it.
	Filter string
	// Dialog is what the user is being asked.
	Dialog Dialog
	// Note is the outcome of the last action.
	Note Note
	// Held is what the container of the page One holds; Record is the delivery chosen there,
	// and RecordOn its instance. One that has gone leaves the choice to the first.
	Held             Held
	Record, RecordOn string
}

// Note is a line about what was done.
type Note struct {
	Text string
	Bad  bool
}

// Held is what a container holds and why, over its instances.
type Held struct {
	Container string
	Total     int
	Records   []HeldRecord // the oldest first
	// Keys are those with the most work, Partitions those that are held back and then the
	// others, Errors the last ones by code.
	Keys       []admin.Key
	Partitions []admin.Partition
	Errors     []admin.Trouble
	// Consumers are all who consume from the source; nil: not known.
	Consumers *admin.Consumers
	// Address is where it consumes, "" where that is not known.
	Address string
	// Problem says why it is not known.
	Problem string
}

// HeldRecord is a delivery that an instance holds.
type HeldRecord struct {
	admin.Record
	Instance string
	// At is the place in the code in which an old call waits; for operators.
	At string `json:"at"`
}

// The least size in which something sensible can be shown.
const leastWidth, leastHeight = 40, 8

// View draws the screen: at most Height lines of at most Width columns.
func (s Screen) View() string {
	if s.Width < leastWidth || s.Height < leastHeight {
		return s.Look.cut(fmt.Sprintf("%d × %d is too small: at least %d × %d", s.Width, s.Height, leastWidth, leastHeight), max(s.Width, 1))
	}
	var body []string
	foot := s.footer()
	room := s.Height - 1 - len(foot)
	switch s.Page {
	case Overview:
		body = s.overview(room)
	case One:
		body = s.one(room)
	case Help:
		body = s.help()
	}
	lines := append([]string{s.header()}, body[:min(len(body), room)]...)
	for len(lines) < s.Height-len(foot) {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, foot...), "\n")
}

// groups are the containers of the scope that the filter lets through, the worst first.
func (s *Screen) groups() []fleet.Group {
	in := s.Fleet
	if s.Scope != "" {
		in.Instances = nil
		for _, i := range s.Fleet.Instances {
			if i.Name == s.Scope {
				in.Instances = append(in.Instances, i)
			}
		}
	}
	var list []fleet.Group
	for _, g := range fleet.Groups(&in) {
		if s.Filter == "" || contains(g.Name, s.Filter) || contains(g.Parts[0].Transport+" "+g.Parts[0].Source, s.Filter) {
			list = append(list, g)
		}
	}
	fleet.ByUrgency(list)
	return list
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// current is the container that keys are about; nil: there is none.
func (s *Screen) current() *fleet.Group {
	list := s.groups()
	for i := range list {
		if list[i].Name == s.Selected {
			return &list[i]
		}
	}
	if s.Page == Overview && len(list) > 0 {
		return &list[0]
	}
	return nil
}

func (s *Screen) header() string {
	live := 0
	for _, in := range s.Fleet.Instances {
		if in.Status == fleet.Live {
			live++
		}
	}
	left := "Longshore"
	switch s.Page {
	case One:
		left += " › " + clean(s.Selected)
	case Help:
		left += " › keys"
	default:
		list, needs := s.groups(), 0
		for i := range list {
			if _, u := list[i].Worst(); u >= fleet.Troubled {
				needs++
			}
		}
		left += fmt.Sprintf("   %s, %d %s you", counted(len(list), "container"), needs, map[bool]string{true: "needs", false: "need"}[needs == 1])
	}
	scope := fmt.Sprintf("%d of %s live", live, counted(len(s.Fleet.Instances), "instance"))
	if s.Scope != "" {
		scope = "instance " + clean(s.Scope)
	}
	right := scope + "   " + s.Now.Format(time.TimeOnly)
	left = s.Look.cut(left, s.Width-len([]rune(right))-2)
	gap := max(s.Width-width(left)-width(right), 1)
	return s.Look.paint(strong, left) + strings.Repeat(" ", gap) + s.Look.paint(faint, s.Look.cut(right, s.Width-1))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// state is a container's state in a glyph and words, and what it means.
func (s *Screen) state(p *fleet.Part, u fleet.Urgency) (glyph, word string, as tone) {
	switch {
	case p.Instance.Status == fleet.Silent:
		return "○", "no answer", bad
	case !p.Live && p.State != container.StateNew:
		return "■", "ended", bad
	case p.State == container.StatePaused:
		return "‖", "paused", warning
	case p.State == container.StateStopped, p.State == container.StateNew:
		return "■", string(p.State), warning
	case u >= fleet.Troubled:
		return "▲", string(p.State), bad
	case u == fleet.Held:
		return "▲", string(p.State), warning
	}
	return "●", string(p.State), good
}

// sentence is what limits a container, in one sentence.
func (s *Screen) sentence(p *fleet.Part) string {
	if p.Instance.Status == fleet.Silent {
		return fmt.Sprintf("stale since %s: %s", clock(s.Now, p.Instance.Heard), clean(p.Instance.Problem))
	}
	text := clean(p.Limited.Text)
	if text == "" {
		text = clean(p.Reason)
	}
	if text == "" && p.Limited.By != "" {
		text = p.Limited.By + " (the sentence needs a token)"
	}
	return text
}

// stands is said of a container that does nothing while work waits.
func stands(t *fleet.Total) string {
	if waits := max(t.Backlog, 0) + int64(t.InFlight) + int64(t.Parked); t.Rate == 0 && waits > 0 && t.Silent < t.Instances {
		return fmt.Sprintf("0/s while %s wait: ", thousands(waits))
	}
	return ""
}

// footer is the question that the user is asked, or the outcome of the last action, and the
// keys.
func (s *Screen) footer() []string {
	var lines []string
	if s.Dialog.Kind != NoDialog {
		return append(lines, s.dialog()...)
	}
	if s.Note.Text != "" {
		as := good
		mark := "done: "
		if s.Note.Bad {
			as, mark = bad, "failed: "
		}
		for _, l := range s.Look.wrap(mark+s.Note.Text, s.Width, 3) {
			lines = append(lines, s.Look.paint(as, l))
		}
	}
	keys := "enter details  / filter  i instance  p pause  r resume  t throttle  ? help  q quit"
	switch {
	case s.Page == One && s.Width < 90:
		keys = "esc back  p pause  r resume  t throttle  n retry  x dead-letter  ? help  q quit"
	case s.Page == One:
		keys = "esc back  i instance  p pause  r resume  t throttle  c clear  w workers  D drain  n retry  x dead-letter  b give back  ? help  q quit"
	case s.Page == Help:
		keys = "esc back  q quit"
	case s.Width < 82:
		keys = "enter details  / filter  p pause  r resume  t throttle  ? help  q quit"
	}
	return append(lines, s.Look.paint(faint, s.Look.cut(keys, s.Width)))
}

func (s *Screen) help() []string {
	lines := []string{""}
	for _, k := range [][2]string{
		{"up, down, j, k", "choose a container, on its page one of its deliveries"},
		{"enter", "show it: charts, deliveries it holds, events"},
		{"esc", "back; in a question: ask for nothing"},
		{"/", "filter by name or source; empty shows all"},
		{"i", "next instance; after the last one, all of them"},
		{"p, r", "pause and resume"},
		{"t", "throttle: permits, for how long, and why"},
		{"c", "clear the throttle"},
		{"w", "bounds of the workers"},
		{"R", "try to connect now, while it recovers"},
		{"n, x, b", "the delivery: retry now, dead-letter, give back"},
		{"D", "drain: it stops until the service is started again"},
		{"q, Ctrl-C", "leave"},
	} {
		lines = append(lines, "  "+s.Look.fit(k[0], 16, false)+s.Look.cut(k[1], s.Width-18))
	}
	return append(lines, "", s.Look.cut("  An action goes to the instances shown, with the operator's token of each.", s.Width),
		s.Look.cut("  ● well   ▲ needs a look   ‖ paused   ■ stopped   ○ no answer, numbers are old", s.Width))
}
