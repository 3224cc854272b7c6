package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/table"
)

// Result is what was measured.
type Result struct {
	OK      bool     `json:"ok"`
	Seed    uint64   `json:"seed"`
	Seconds float64  `json:"seconds"`
	Stopped bool     `json:"stopped,omitempty"` // at once, by the second signal: the counts say nothing about loss
	Drain   Drain    `json:"drain"`
	Brokers []Broker `json:"brokers"`
	// Migration is how the orders were moved; nil = they were not.
	Migration *Migration `json:"migration,omitempty"`
}

// Broker is the count of one broker.
type Broker struct {
	Name string `json:"name"`
	Count
}

// Drain is how all containers stopped.
type Drain struct {
	Seconds   float64  `json:"seconds"`
	Budget    float64  `json:"budget_seconds"`
	Completed int      `json:"completed"`
	Released  int      `json:"released"`
	Abandoned int      `json:"abandoned"`
	Unflushed int      `json:"unflushed"`
	IDs       []string `json:"abandoned_ids,omitempty"`
}

func (d *Drain) add(r *container.Report) {
	if r == nil {
		return
	}
	d.Seconds = max(d.Seconds, r.Took.Seconds())
	d.Budget = max(d.Budget, r.Budget.Seconds())
	d.Completed += r.Completed
	d.Released += r.Released
	d.Abandoned += r.Abandoned
	d.Unflushed += r.Unflushed
	for _, id := range r.AbandonedIDs {
		d.IDs = append(d.IDs, r.Container+" "+id)
	}
}

func (d Drain) String() string {
	return fmt.Sprintf("drained in %.2f s of %v: completed while draining %d, released %d, abandoned %d, unflushed %d", d.Seconds,
		time.Duration(d.Budget*float64(time.Second)).Round(time.Second), d.Completed, d.Released, d.Abandoned, d.Unflushed)
}

// Write prints the report; paint colours a word (nil = no colours).
func (r Result) Write(w io.Writer, paint func(cli.Color, string) string) error {
	if paint == nil {
		paint = func(_ cli.Color, s string) string { return s }
	}
	lines := []string{r.Drain.String()}
	if len(r.Drain.IDs) > 0 {
		lines = append(lines, "still with their handlers: "+strings.Join(r.Drain.IDs, ", "))
	}
	if r.Stopped {
		lines = append(lines, "stopped at once; these orders were abandoned:")
		for _, b := range r.Brokers {
			line := b.Name + "  " + count(b.Abandoned, "order", "orders")
			if b.Abandoned > 0 {
				line += ": " + orderIDs(b.AbandonedIDs, b.Abandoned)
			}
			lines = append(lines, line)
		}
	} else {
		lines = append(lines, r.table()...)
		if r.Migration != nil {
			lines = append(lines, r.Migration.Lines()...)
		}
		lines = append(lines, r.findings(paint)...)
		lines = append(lines, r.verdict(paint))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

func (r Result) table() []string {
	t := table.Table{Columns: []table.Column{{}}}
	left := r.total(func(c Count) int { return c.Left }) > 0
	names := []string{"published", "handled", "dead", "redelivered", "lost", "settled twice", "out of order"}
	if left {
		names = append(names, "still queued")
	}
	for _, name := range names {
		t.Columns = append(t.Columns, table.Column{Name: name, Right: true})
	}
	for _, b := range r.Brokers {
		row := []string{b.Name}
		for _, n := range []int{b.Published, b.Handled, b.Dead, b.Redelivered, b.Lost, b.Twice, b.Inverted} {
			row = append(row, thousands(n))
		}
		if left {
			row = append(row, thousands(b.Left))
		}
		t.Add(row...)
	}
	return t.Lines()
}

func (r Result) total(of func(Count) int) int {
	n := 0
	for _, b := range r.Brokers {
		n += of(b.Count)
	}
	return n
}

// findings names the first orders of everything that must not happen.
func (r Result) findings(paint func(cli.Color, string) string) []string {
	var lines []string
	for _, b := range r.Brokers {
		for _, f := range []struct {
			what string
			n    int
			ids  []int
		}{{"lost", b.Lost, b.LostIDs}, {"settled twice", b.Twice, b.TwiceIDs}, {"out of order", b.Inverted, b.InvertedIDs}} {
			if f.n == 0 {
				continue
			}
			lines = append(lines, fmt.Sprintf("%s %s %s: %s", paint(cli.Red, "bad"), b.Name, f.what, orderIDs(f.ids, f.n)))
		}
		if b.Missed > 0 {
			lines = append(lines, fmt.Sprintf("%s %s: the ledger missed %d events; settled twice may be too high", paint(cli.Yellow, "note"), b.Name, b.Missed))
		}
	}
	return lines
}

// orderIDs names the first of n orders.
func orderIDs(first []int, n int) string {
	ids := make([]string, len(first))
	for i, id := range first {
		ids[i] = fmt.Sprintf("o-%d", id)
	}
	text := strings.Join(ids, " ")
	if n > len(ids) {
		text += fmt.Sprintf(" and %s more", thousands(n-len(ids)))
	}
	return text
}

func (r Result) verdict(paint func(cli.Color, string) string) string {
	published := thousands(r.total(func(c Count) int { return c.Published }))
	tail := fmt.Sprintf("%.1f s (seed %d)", r.Seconds, r.Seed)
	if !r.OK {
		return fmt.Sprintf("%s  %s orders, %s", paint(cli.Red, "FAILED"), published, tail)
	}
	queued := ""
	if left := r.total(func(c Count) int { return c.Left }); left > 0 {
		queued = ", " + thousands(left) + " were still queued"
	}
	return fmt.Sprintf("%s  %s orders, nothing lost%s, %s", paint(cli.Green, "ok"), published, queued, tail)
}
