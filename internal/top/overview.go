package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/longshore-go/longshore/internal/fleet"
)

func width(s string) int { return ansi.StringWidth(s) }

// column is one of the overview. Its width is at least least.
type column struct {
	head  string
	least int
	right bool
	text  func(*row) string
}

// row is a container in the overview.
type row struct {
	group *fleet.Group
	worst *fleet.Part
	urge  fleet.Urgency
	total fleet.Total
}

func rowOf(g *fleet.Group) *row {
	worst, urge := g.Worst()
	return &row{group: g, worst: worst, urge: urge, total: g.Total()}
}

// columns are those for which there is room, the last one last to go.
func (s *Screen) columns() []column {
	all := []column{
		{"container", 15, false, func(r *row) string { return s.name(r) }},
		{"state", 11, false, func(r *row) string { _, word, _ := s.state(r.worst, r.urge); return word }},
		{"rate/s", 6, true, func(r *row) string { return number(r.total.Rate) }},
		{"backlog", 8, true, func(r *row) string { return number(float64(r.total.Backlog)) }},
		{"oldest", 7, true, func(r *row) string { return span(r.total.Oldest) }},
		{"workers", 7, true, func(r *row) string { return fmt.Sprintf("%d/%d", r.total.Now, r.total.Max) }},
		{"rate", 9, false, nil},
		{"dead", 6, true, func(r *row) string { return number(float64(r.total.Dead)) }},
		{"retried", 7, true, func(r *row) string { return number(float64(r.total.Retried)) }},
		{"p99", 7, true, func(r *row) string { return span(r.total.P99) }},
		{"source", 18, false, func(r *row) string { return clean(r.group.Parts[0].Transport + " " + r.group.Parts[0].Source) }},
	}
	room := s.Width - 3
	for i, c := range all {
		if room -= c.least + 1; room < -1 {
			if i < 8 { // the narrow ones: what there is room for, without the chart
				all = slices.Delete(all[:8], 6, 7)
				for sum(all)+3 > s.Width && len(all) > 3 {
					all = all[:len(all)-1]
				}
				return all
			}
			all = all[:i]
			break
		}
	}
	spare := s.Width - 3 - sum(all) + 1
	for i := range all { // names and charts take the rest
		switch all[i].head {
		case "container":
			more := min(spare, max(s.longestName()-all[i].least, 0))
			all[i].least += more
			spare -= more
		case "rate":
			all[i].least += min(spare, 30)
			spare -= min(spare, 30)
		}
	}
	return all
}

func sum(cs []column) (n int) {
	for _, c := range cs {
		n += c.least + 1
	}
	return n
}

func (s *Screen) longestName() (n int) {
	for _, g := range s.groups() {
		n = max(n, width(s.name(rowOf(&g))))
	}
	return min(n, 40)
}

func (s *Screen) name(r *row) string {
	text := clean(r.group.Name)
	switch {
	case r.total.Silent > 0:
		text += fmt.Sprintf(" ×%d/%d", r.total.Instances-r.total.Silent, r.total.Instances)
	case r.total.Instances > 1:
		text += fmt.Sprintf(" ×%d", r.total.Instances)
	}
	return text
}

// overview is one row for each container, with its sentence below it.
func (s *Screen) overview(room int) []string {
	foot := s.instances(max(room/3, 1))
	cs := s.columns()
	head := "   "
	for i, c := range cs {
		if i > 0 {
			head += " "
		}
		head += s.Look.fit(c.head, c.least, c.right)
	}
	list := s.groups()
	blocks, at := make([][]string, len(list)), 0
	selected := ""
	if g := s.current(); g != nil {
		selected = g.Name
	}
	for i := range list {
		blocks[i] = s.block(cs, rowOf(&list[i]), list[i].Name == selected)
		if list[i].Name == selected {
			at = i
		}
	}
	lines := []string{s.Look.paint(faint, s.Look.cut(head, s.Width))}
	lines = append(lines, visible(blocks, at, room-1-len(foot))...)
	if len(list) == 0 {
		lines = append(lines, "   "+s.Look.cut(s.empty(), s.Width-3))
	}
	return append(lines, foot...)
}

func (s *Screen) empty() string {
	for _, in := range s.Fleet.Instances {
		switch {
		case in.Status == fleet.Live && s.Filter != "":
			return fmt.Sprintf("no container has %q in its name or source", clean(s.Filter))
		case in.Status == fleet.Live:
			return "no containers: start one with this admin address"
		case in.Status == fleet.Asking:
			return "asking …"
		}
	}
	return "no instance has answered"
}

// block is a container's row and sentence.
func (s *Screen) block(cs []column, r *row, selected bool) []string {
	glyph, _, as := s.state(r.worst, r.urge)
	mark := " "
	if selected {
		mark = "›"
	}
	cells := make([]string, len(cs))
	for i, c := range cs {
		if c.text == nil {
			cells[i] = s.Look.spark(summed(r.group, func(p fleet.Point) float64 { return p.Done }), c.least)
			continue
		}
		cells[i] = s.Look.fit(c.text(r), c.least, c.right)
	}
	text := strings.TrimRight(strings.Join(cells, " "), " ")
	if r.total.Silent == r.total.Instances {
		text = s.Look.paint(faint, text) // its numbers are old
	} else if selected {
		text = s.Look.paint(chosen, text)
	}
	lines := []string{s.Look.in(mark) + s.Look.paint(as, s.Look.in(glyph)) + " " + text}
	why := s.sentence(r.worst)
	if r.urge == fleet.Fine || why == "" {
		return lines
	}
	if n := len(r.group.Parts); n > 1 {
		why = clean(r.worst.Instance.Name) + ": " + why
	}
	most := 1
	if r.urge >= fleet.Held {
		why, most = stands(&r.total)+why, 3
	}
	for _, l := range s.Look.wrap(why, s.Width-5, most) {
		lines = append(lines, "     "+s.Look.paint(map[bool]tone{true: as, false: faint}[r.urge >= fleet.Held], l))
	}
	return lines
}

// summed adds up the series of a group's instances, the newest with the newest.
func summed(g *fleet.Group, of func(fleet.Point) float64) []float64 {
	var out []float64
	for _, points := range current(g) {
		if len(points) > len(out) {
			out = append(make([]float64, len(points)-len(out)), out...)
		}
		for i, v := range points {
			out[len(out)-len(points)+i] += max(of(v), 0)
		}
	}
	return out
}

// current are the series of a group's instances that answer; of all where none does.
func current(g *fleet.Group) (all [][]fleet.Point) {
	for _, status := range []fleet.Status{fleet.Live, fleet.Silent} {
		for _, p := range g.Parts {
			if p.Instance.Status == status {
				all = append(all, p.Instance.Series[g.Name])
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return all
}

// visible cuts blocks to n lines around the one at which the selection is.
func visible(blocks [][]string, at, n int) []string {
	first, lines := 0, 0
	for i := 0; i <= at && i < len(blocks); i++ {
		lines += len(blocks[i])
		for lines > n && first < i {
			lines -= len(blocks[first])
			first++
		}
	}
	var out []string
	for _, b := range blocks[min(first, len(blocks)):] {
		out = append(out, b...)
	}
	return out[:max(min(len(out), n), 0)]
}

// instances are those that do not answer or have restarted, and the differences between the
// others, in at most n lines.
func (s *Screen) instances(n int) []string {
	var lines []string
	add := func(as tone, text string) {
		lines = append(lines, s.Look.paint(as, s.Look.cut(text, s.Width)))
	}
	for _, in := range s.Fleet.Instances {
		switch {
		case in.Status == fleet.Silent && in.Heard.IsZero():
			add(bad, fmt.Sprintf("○ %s has not answered: %s; %s", clean(in.Name), clean(in.Problem), clean(in.Help)))
		case in.Status == fleet.Silent:
			add(bad, fmt.Sprintf("○ %s does not answer since %s, its numbers are old: %s; %s", clean(in.Name), clock(s.Now, in.Since), clean(in.Problem), clean(in.Help)))
		case !in.Restarted.IsZero() && s.Now.Sub(in.Restarted) < restartShown:
			add(warning, fmt.Sprintf("▲ %s was restarted %s", clean(in.Name), ago(s.Now, in.Restarted)))
		}
	}
	for _, d := range fleet.Differences(&s.Fleet) {
		add(warning, "≠ "+clean(d.String()))
	}
	if len(lines) > n {
		lines = append(lines[:n-1], s.Look.paint(warning, s.Look.cut(fmt.Sprintf("▲ and %d more; press i to see one instance", len(lines)-n+1), s.Width)))
	}
	return lines
}
