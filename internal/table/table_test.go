package table

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func sample(width int) *Table {
	t := &Table{Width: width, Columns: []Column{
		{Name: "container", Min: 6},
		{Name: "state", Tone: ByWord(map[string]Tone{"running": Good, "failed": Bad})},
		{Name: "rate/s", Right: true},
		{Name: "p99", Right: true, Drop: 1},
		{Name: "what", Min: 10, Wrap: true},
		{Name: "do", Below: true},
	}}
	t.Add("orders", "running", "1200", "12ms", "all is well", "")
	t.Add("invoices-archive", "failed", "7", "1.2s", "the queue is gone since the last restart", "declare it, or correct its name")
	return t
}

// The same table in a pipe, in a wide terminal and in a narrow one.
func TestLayouts(t *testing.T) {
	for width, want := range map[int]string{
		0: `
container         state    rate/s   p99  what                                      do
orders            running    1200  12ms  all is well
invoices-archive  failed        7  1.2s  the queue is gone since the last restart  declare it, or correct its name`,
		120: `
container         state      rate/s   p99  what                                      do
orders            ✓ running    1200  12ms  all is well
invoices-archive  ✗ failed        7  1.2s  the queue is gone since the last restart  declare it, or correct its name`,
		80: `
container         state      rate/s   p99  what
orders            ✓ running    1200  12ms  all is well
invoices-archive  ✗ failed        7  1.2s  the queue is gone since the last
                                           restart
    declare it, or correct its name`,
		40: `
container  state      rate/s  what
orders     ✓ running    1200  all is
                              well
invoices…  ✗ failed        7  the queue
                              is gone
                              since the
                              last
                              restart
    declare it, or correct its name`,
	} {
		if got := "\n" + strings.Join(sample(width).Lines(), "\n"); got != want {
			t.Errorf("width %d:%s\nwant:%s", width, got, want)
		}
	}
	if got := sample(40).Hidden(); !slices.Equal(got, []string{"p99"}) {
		t.Errorf("hidden: %q", got)
	}
	if got := sample(0).Hidden(); got != nil {
		t.Errorf("hidden in a pipe: %q", got)
	}
}

// A table in parts has one header, and later rows keep the columns.
func TestParts(t *testing.T) {
	tab := &Table{Columns: []Column{{Name: "id"}, {Name: "n", Right: true}}}
	tab.Add("a-long-id", "1")
	got := tab.Lines()
	tab.Add("b", "2")
	got = append(got, tab.Lines()...)
	if want := []string{"id         n", "a-long-id  1", "b          2"}; !slices.Equal(got, want) || tab.Len() != 0 || tab.Lines() != nil {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPaintTakesNoRoom(t *testing.T) {
	plain, painted := sample(80), sample(80)
	var tones []Tone
	painted.Paint = func(tone Tone, s string) string { tones = append(tones, tone); return "<" + s + ">" }
	with := painted.Lines()
	for i, line := range plain.Lines() {
		if got := strings.NewReplacer("<", "", ">", "").Replace(with[i]); strings.TrimRight(got, " ") != line {
			t.Errorf("%q, want %q", got, line)
		}
	}
	if !slices.Contains(tones, Good) || !slices.Contains(tones, Bad) || !slices.Contains(tones, Header) || slices.Contains(tones, Plain) {
		t.Errorf("tones %v", tones)
	}
}

// Whatever the cells hold, no line is wider than the terminal, and what wraps is whole.
func TestNothingIsWiderThanTheTerminal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []rune("abc de-1 世界 é\u0301 😀")
	text := func(n int) string {
		var b strings.Builder
		for range r.IntN(n) {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		return strings.TrimSpace(b.String())
	}
	for range 500 {
		width := 40 + r.IntN(120)
		tab := sample(width)
		long := text(200)
		for range 3 {
			tab.Add(text(60), []string{"running", "failed", "other"}[r.IntN(3)], "17", text(8), long, text(300))
		}
		lines := tab.Lines()
		for _, line := range lines {
			if Width(line) > width {
				t.Fatalf("width %d: a line of %d: %q", width, Width(line), line)
			}
		}
		squeezed := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if got := squeezed(strings.Join(wrap(long, 17), "")); got != squeezed(long) {
			t.Fatalf("wrapped %q to %q", long, got)
		}
	}
}

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{"": 0, "größe": 5, "世界": 4, "e\u0301": 1, "😀": 2, "▕██▏": 4, "✓ ok": 4} {
		if got := Width(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"世界人", 4, "世…"}, {"a", 0, "…"}} {
		if got := cut(c.s, c.n); got != c.want {
			t.Errorf("cut %q to %d: %q", c.s, c.n, got)
		}
	}
}
