package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/internal/fleet"
	"github.com/longshore-go/longshore/middleware/throttle"
)

// restartShown is for how long a restart is shown.
const restartShown = 2 * time.Minute

// one is the page of a container: how it stands, charts, what holds it, what it holds, and
// what happened.
func (s *Screen) one(room int) []string {
	g := s.current()
	if g == nil {
		return []string{"", s.Look.cut(fmt.Sprintf("%q is on no instance that was asked; esc goes back", clean(s.Selected)), s.Width)}
	}
	r := rowOf(g)
	lines := s.standing(r)
	lines = append(lines, s.charts(r)...)
	lines = append(lines, s.facts(r)...)
	if len(g.Parts) > 1 {
		lines = append(lines, s.parts(g)...)
	}
	lines = append(lines, s.hot()...)
	rest := room - len(lines)
	held := s.held(max(rest-4, 2))
	lines = append(lines, held...)
	return append(lines, s.events(g, room-len(lines))...)
}

// standing is the state, the source and the sentence.
func (s *Screen) standing(r *row) []string {
	p := r.worst
	glyph, word, as := s.state(p, r.urge)
	first := word
	if !p.Since.IsZero() {
		first += ", started " + clock(s.Now, p.Since)
	}
	first += " · " + clean(p.Transport+" "+p.Source)
	if s.Held.Container == s.Selected && s.Held.Address != "" {
		first += " at " + clean(s.Held.Address)
	}
	lines := []string{s.Look.paint(as, s.Look.in(glyph)+" ") + s.Look.cut(first, s.Width-2)}
	why := s.sentence(p)
	if why == "" {
		return lines
	}
	if len(r.group.Parts) > 1 {
		why = clean(p.Instance.Name) + ": " + why
	}
	if r.urge < fleet.Held {
		as = faint
	}
	for _, l := range s.Look.wrap(stands(&r.total)+why, s.Width-2, 4) {
		lines = append(lines, "  "+s.Look.paint(as, l))
	}
	return lines
}

// chart is a measure over time.
type chart struct {
	name string
	of   func(fleet.Point) float64
	most bool // of several instances the largest counts, not the sum
	text string
}

func (s *Screen) charts(r *row) []string {
	t := &r.total
	last := func(of func(fleet.Point) float64) float64 { return recent(r.group, of) }
	done := func(p fleet.Point) float64 { return p.Done }
	list := []chart{
		{"in", func(p fleet.Point) float64 { return p.In }, false, number(last(func(p fleet.Point) float64 { return p.In })) + "/s"},
		{"done", done, false, fmt.Sprintf("%s/s   failed %s/s   dead %s/s", number(last(done)),
			number(last(func(p fleet.Point) float64 { return p.Failed })), number(last(func(p fleet.Point) float64 { return p.Dead })))},
		{"backlog", func(p fleet.Point) float64 { return p.Backlog }, true, fmt.Sprintf("%s   oldest %s", number(float64(t.Backlog)), span(t.Oldest))},
		{"workers", func(p fleet.Point) float64 { return float64(p.Workers) }, false, fmt.Sprintf("%d of %d to %d, %d busy", t.Now, t.Min, t.Max, t.Busy)},
		{"p99", func(p fleet.Point) float64 { return p.P99 }, true, s.latencies(r)},
		{"parked", func(p fleet.Point) float64 { return float64(p.Parked) }, false, fmt.Sprintf("%s   in flight %s", number(float64(t.Parked)), number(float64(t.InFlight)))},
	}
	side := min(max(s.Width/2-7, 24), 44)
	var lines []string
	for _, c := range list {
		of := summed
		if c.most {
			of = largest
		}
		w := s.Width - side - 11
		lines = append(lines, s.Look.fit(c.name, 9, false)+s.Look.spark(of(r.group, c.of), w)+"  "+s.Look.cut(c.text, side))
	}
	return lines
}

// latencies are how long handlers take, now and before.
func (s *Screen) latencies(r *row) string {
	text := fmt.Sprintf("p50 %s   p99 %s", span(r.total.P50), span(r.total.P99))
	if u := r.total.Usual; u > 0 {
		text += "   was " + span(u)
	}
	return text
}

// recent is the mean of the last few points of all instances.
func recent(g *fleet.Group, of func(fleet.Point) float64) float64 {
	values := summed(g, of)
	values = values[max(0, len(values)-5):]
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}

// largest is the largest value of a group's instances at each time; −1 where none knows it.
func largest(g *fleet.Group, of func(fleet.Point) float64) []float64 {
	var out []float64
	for _, points := range current(g) {
		if missing := len(points) - len(out); missing > 0 {
			out = append(slices.Repeat([]float64{-1}, missing), out...)
		}
		for i, v := range points {
			at := len(out) - len(points) + i
			out[at] = max(out[at], of(v))
		}
	}
	return out
}

// facts are lines that matter only sometimes.
func (s *Screen) facts(r *row) []string {
	var lines []string
	add := func(as tone, name, text string) {
		lines = append(lines, s.Look.fit(name, 9, false)+s.Look.paint(as, s.Look.cut(text, s.Width-9)))
	}
	for i := range r.group.Parts {
		p := &r.group.Parts[i]
		if text := s.limits(p); text != "" {
			add(warning, "throttle", s.of(r, p)+text)
		}
		if p.Paused != nil {
			text := "since " + clock(s.Now, p.Paused.At)
			if p.Paused.By != "" {
				text = "by " + clean(p.Paused.By) + " " + text
			}
			if p.Paused.Reason != "" {
				text += " (" + clean(p.Paused.Reason) + ")"
			}
			add(warning, "paused", s.of(r, p)+text+"; r resumes")
		}
	}
	if text := s.errors(r); text != "" {
		add(ordinary, "errors", text)
	}
	add(ordinary, "sums", fmt.Sprintf("done %s   retried %s   dead %s   lost %s   last message %s", number(float64(r.total.Acked)), number(float64(r.total.Retried)),
		number(float64(r.total.Dead)), number(float64(r.total.Lost)), ago(s.Now, r.total.Last)))
	if w := r.total.Window; w > 0 && (r.total.Blocked > 0 || r.total.HotShare >= 0.2) {
		text := fmt.Sprintf("%s of %s held, %s behind others of their key, %s blocked", number(float64(r.total.InFlight)), number(float64(w)), number(float64(r.total.Queued)), number(float64(r.total.Blocked)))
		if r.total.HotShare >= 0.2 {
			text += fmt.Sprintf("   largest key %.0f %%", 100*r.total.HotShare)
		}
		add(ordinary, "window", text)
	}
	return lines
}

// of names the instance of a part where there are several.
func (s *Screen) of(r *row, p *fleet.Part) string {
	if len(r.group.Parts) > 1 {
		return clean(p.Instance.Name) + ": "
	}
	return ""
}

// limits is what a throttle limits, who set it and until when; "" without one.
func (s *Screen) limits(p *fleet.Part) string {
	t := p.Throttle
	if t == nil || t.Permits < 0 && t.Rate < 0 {
		return ""
	}
	var parts []string
	if t.Permits >= 0 {
		parts = append(parts, fmt.Sprintf("%d of %d permits in use", t.InUse, t.Permits))
	}
	if t.Rate >= 0 {
		parts = append(parts, fmt.Sprintf("rate %v/s", t.Rate))
	}
	text := strings.Join(parts, ", ")
	for _, o := range []*throttle.Override{t.Operator, t.Fleet} {
		if o == nil {
			continue
		}
		if o.By != "" {
			text += ", set by " + clean(o.By)
		}
		if !o.At.IsZero() {
			text += " at " + clock(s.Now, o.At)
		}
		if !o.Until.IsZero() {
			text += " until " + clock(s.Now, o.Until)
		}
		if o.Reason != "" {
			text += " (" + clean(o.Reason) + ")"
		}
		return text + "; c clears"
	}
	return text
}

// errors are the failed calls by their code, the most frequent first, and the last text.
func (s *Screen) errors(r *row) string {
	codes := slices.SortedFunc(maps.Keys(r.total.Failed), func(a, b longshore.Code) int {
		return cmp.Or(cmp.Compare(r.total.Failed[b], r.total.Failed[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, c := range codes {
		parts = append(parts, fmt.Sprintf("%s %s", clean(string(c)), number(float64(r.total.Failed[c]))))
	}
	if h := &s.Held; h.Container == s.Selected && len(h.Errors) > 0 {
		parts = append(parts, fmt.Sprintf("last %s: %s", ago(s.Now, h.Errors[0].Last), clean(h.Errors[0].Text)))
	}
	return strings.Join(parts, "   ")
}

// parts is one line for each instance.
func (s *Screen) parts(g *fleet.Group) []string {
	name := 10
	for _, p := range g.Parts {
		name = min(max(name, width(clean(p.Instance.Name))), s.Width-54)
	}
	line := func(cells ...string) string {
		text := s.Look.fit(cells[0], name, false) + " " + s.Look.fit(cells[1], 11, false)
		for i, w := range []int{7, 8, 7, 8, 7} {
			text += " " + s.Look.fit(cells[i+2], w, true)
		}
		return strings.TrimRight(text, " ")
	}
	lines := []string{s.Look.paint(faint, line("instance", "state", "rate/s", "backlog", "oldest", "workers", "p99"))}
	for i := range g.Parts {
		p := &g.Parts[i]
		glyph, word, as := s.state(p, fleet.Urgent(p))
		backlog := -1.0
		if p.Backlog != nil {
			backlog = float64(*p.Backlog)
		}
		text := line(clean(p.Instance.Name), glyph+" "+word, number(p.Rate), number(backlog), span(p.Oldest), fmt.Sprintf("%d/%d", p.Workers.Now, p.Workers.Max), span(p.HandlerP99))
		if p.Instance.Status == fleet.Silent {
			as = faint
		} else if as == good {
			as = ordinary
		}
		lines = append(lines, s.Look.paint(as, text))
	}
	return lines
}

// held are the deliveries that are held the longest, in at most n lines.
func (s *Screen) held(n int) []string {
	h := &s.Held
	switch {
	case h.Container != s.Selected:
		return nil
	case h.Problem != "" && len(h.Records) == 0:
		return []string{s.Look.paint(faint, s.Look.cut("deliveries held: "+clean(h.Problem), s.Width))}
	case len(h.Records) == 0:
		return nil
	}
	idw, keyw := (s.Width-37)/2, (s.Width-37)/2
	line := func(c ...string) string {
		return strings.TrimRight(s.Look.fit(c[0], idw, false)+" "+s.Look.fit(c[1], keyw, false)+" "+s.Look.fit(c[2], 8, false)+" "+s.Look.fit(c[3], 7, true)+" "+s.Look.fit(c[4], 7, true)+" "+s.Look.fit(c[5], 9, true), " ")
	}
	chosen := s.chosen()
	lines := []string{s.Look.paint(faint, line(fmt.Sprintf("held %s, oldest first", thousands(int64(h.Total))), "key", "state", "attempt", "age", "due"))}
	first := 0
	if at := s.chosenAt(); at > (n-2)/2 { // it may not fit below those before it
		first = at
	}
	for i := first; i < len(h.Records); i++ {
		r, mark := &h.Records[i], " "
		if r == chosen {
			mark = s.Look.in("›")
		}
		due := ""
		if !r.Due.IsZero() {
			due = clock(s.Now, r.Due)
		}
		as := ordinary
		if r.State == "stuck" || r.State == "running" && r.Age >= old {
			as = bad
		}
		attempt := fmt.Sprint(r.Attempt)
		if r.Of > 0 {
			attempt += fmt.Sprintf("/%d", r.Of)
		}
		lines = append(lines, s.Look.paint(as, line(mark+clean(r.Record.Record), clean(r.Key), clean(string(r.State)), attempt, span(r.Age), due)))
		if r.At != "" {
			lines = append(lines, s.Look.paint(as, s.Look.cut("  at "+clean(r.At), s.Width)))
		}
		if len(lines) >= n {
			break
		}
	}
	return lines[:min(len(lines), n)]
}

// old is the age in seconds from which a running call is red.
const old = 10

// hot are the keys with the most work and the partitions that are held back.
func (s *Screen) hot() []string {
	h := &s.Held
	if h.Container != s.Selected {
		return nil
	}
	var lines []string
	add := func(name, text string) {
		lines = append(lines, s.Look.fit(name, 9, false)+s.Look.cut(text, s.Width-9))
	}
	for _, k := range h.Keys[:min(len(h.Keys), 3)] {
		add("hot key", fmt.Sprintf("%s   %d wait, %.0f %% of the window; its first is %s for %s, attempt %d", s.Look.cut(clean(k.Key), s.Width/3), k.Waiting, 100*k.Share, clean(string(k.State)), span(k.Age), k.Attempt))
	}
	for _, p := range h.Partitions[:min(len(h.Partitions), 3)] {
		if p.Since.IsZero() { // those that are held back come first
			add("parts", fmt.Sprintf("%d, %s behind the end", len(h.Partitions), number(float64(lagOf(h.Partitions)))))
			break
		}
		text := fmt.Sprintf("%s/%d stands behind offset %d since %s, %d of %d beyond it", clean(p.Topic), p.Partition, p.Position, clock(s.Now, p.Since), p.Behind, p.Window)
		if !p.Due.IsZero() {
			text += fmt.Sprintf("; attempt %d, next at %s", p.Attempt, clock(s.Now, p.Due))
		}
		add("stands", text)
	}
	if c := h.Consumers; c != nil && c.Total > 1 {
		text := fmt.Sprintf("%d", c.Total)
		if c.Share != nil {
			text += fmt.Sprintf(", our share %.0f %%", 100**c.Share)
		}
		for _, l := range c.List {
			if !l.Own {
				text += fmt.Sprintf("; %s %s", clean(cmp.Or(l.Client, l.Product, l.ID)), clean(l.Host))
			}
		}
		add("users", text)
	}
	return lines
}

// lagOf is how far all partitions are behind their ends.
func lagOf(ps []admin.Partition) (sum int64) {
	for _, p := range ps {
		sum += max(p.Lag, 0)
	}
	return sum
}

// events are the last ones of a container, the newest first.
func (s *Screen) events(g *fleet.Group, n int) []string {
	if n < 2 {
		return nil
	}
	type event struct {
		at   time.Time
		text string
	}
	var list []event
	for _, p := range g.Parts {
		for _, e := range p.Instance.Events {
			if e.Container != g.Name {
				continue
			}
			text := clean(e.Text)
			if e.Reason != "" && !strings.Contains(e.Text, e.Reason) {
				text += ": " + clean(e.Reason)
			}
			if e.By != "" {
				text += ", by " + clean(e.By)
			}
			if len(g.Parts) > 1 {
				text += " (" + clean(p.Instance.Name) + ")"
			}
			list = append(list, event{e.Time, s.Look.fit(clean(e.Kind), 13, false) + " " + text})
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b event) int { return b.at.Compare(a.at) })
	lines := []string{s.Look.paint(faint, "events")}
	for _, e := range list[:min(len(list), n-1)] {
		lines = append(lines, s.Look.cut(clock(s.Now, e.at)+" "+e.text, s.Width))
	}
	return lines
}
