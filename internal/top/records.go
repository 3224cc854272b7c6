package top

import (
	"fmt"
	"slices"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/fleet"
)

// recordVerb is what can be done with one delivery.
type recordVerb struct {
	path, title, done, warning string
}

// recordVerbs are those of the questions about a delivery.
func recordVerbs() map[DialogKind]recordVerb {
	return map[DialogKind]recordVerb{
		RetryingRecord:      {"records/retry-now", "Retry", "retried now", ""},
		DeadLetteringRecord: {"records/dead-letter", "Dead-letter", "dead-lettered", "It goes to the dead-letter destination and is not tried again here."},
		ReleasingRecord:     {"records/release", "Give back", "given back to the broker", "It may come again at once, here or elsewhere."},
	}
}

// chosen is the delivery that the keys are about; nil: none is shown.
func (s *Screen) chosen() *HeldRecord {
	list := s.Held.Records
	if s.Page != One || s.Held.Container != s.Selected || len(list) == 0 {
		return nil
	}
	return &list[max(s.chosenAt(), 0)]
}

// chosenAt is its place in the list; -1: it has gone.
func (s *Screen) chosenAt() int {
	return slices.IndexFunc(s.Held.Records, func(r HeldRecord) bool { return r.Record.Record == s.Record && r.Instance == s.RecordOn })
}

// choose moves to another delivery.
func (s *Screen) choose(by int) {
	list := s.Held.Records
	if len(list) == 0 {
		return
	}
	at := min(max(max(s.chosenAt(), 0)+by, 0), len(list)-1)
	s.Record, s.RecordOn = list[at].Record.Record, list[at].Instance
}

// askRecord opens the question of a key about the chosen delivery.
func (s Screen) askRecord(kind DialogKind) Screen {
	r, g := s.chosen(), s.current()
	if r == nil || g == nil {
		s.Note = Note{"open a container that holds deliveries, and choose one with up and down", true}
		return s
	}
	i := slices.IndexFunc(g.Parts, func(p fleet.Part) bool { return p.Instance.Name == r.Instance && p.Instance.Status == fleet.Live })
	if i < 0 {
		s.Note = Note{"no instance with " + clean(r.Record.Record) + " answers", true}
		return s
	}
	s.Dialog = Dialog{Kind: kind, Container: g.Name, Instances: []string{r.Instance}, Fields: []Field{{Label: "reason"}},
		Record: r.Record.Record, Runs: r.State == container.HeldRunning || r.State == container.HeldStuck}
	return s
}

// recordTitle asks about one delivery, and says what cannot be undone.
func (d *Dialog) recordTitle(v recordVerb) string {
	title := fmt.Sprintf("%s %s of %s on %s? %s", v.title, clean(d.Record), clean(d.Container), clean(d.Instances[0]), v.warning)
	if d.Runs {
		title += " Its handler runs: its context ends now."
	}
	return title
}
