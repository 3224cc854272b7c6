package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/internal/inspect"
	"github.com/longshore-go/longshore/internal/keytext"
	"github.com/longshore-go/longshore/internal/table"
)

// letterLine is a dead letter in JSON.
type letterLine struct {
	ID       string           `json:"id"`
	Who      string           `json:"who,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Error    string           `json:"error,omitempty"`
	Attempts int              `json:"attempts,omitempty"`
	At       *time.Time       `json:"at,omitempty"`
	From     string           `json:"from,omitempty"`
	To       string           `json:"to,omitempty"`
	By       string           `json:"by,omitempty"`
	Replays  int              `json:"replays,omitempty"`
	Replayed bool             `json:"replayed,omitempty"`
	Details  []dlq.Detail     `json:"details,omitempty"`
	Message  inspect.Document `json:"message"`
}

func newLetterLine(n int, l dlq.Letter) letterLine {
	f := l.Facts
	out := letterLine{ID: dlq.ID(l.Delivery), Who: f.Who, Reason: f.Reason, Error: f.Error, Attempts: f.Attempts, From: f.Source, To: f.To,
		By: f.By, Replays: f.Replays, Replayed: l.Replayed, Details: f.Details, Message: inspect.NewDocument(n, l.Delivery)}
	if !f.At.IsZero() {
		out.At = &f.At
	}
	return out
}

// dlqList is `longshore dlq list`.
type dlqList struct {
	deadLetters

	choose   dlqFilter
	replayed bool // list also what was replayed
}

// newDLQList reads a bounded number of messages and says whether there are more: a dead-letter
// queue may be larger than a terminal, and than memory.
func newDLQList(a *app) *cobra.Command {
	f := dlqList{deadLetters: deadLetters{a}}
	cmd := &cobra.Command{
		Use:   "list TARGET",
		Short: "List dead letters with the reason of each",
		Long: "list prints dead letters while it reads them, the oldest first, and stops reading after -n of them.\n" +
			"If looking changes the queue (for example raises a quorum queue's delivery count), list refuses and\n" +
			"says why; --force looks anyway. Replayed records of a Kafka topic are left out.",
		Example: "  longshore dlq list 'kafka://localhost/orders.dlq' --since 24h --reason undecodable",
		Args:    withTarget(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.choose.filter(cmd)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), filter, args[0])
		},
	}
	f.choose.flags(cmd, 20, "show this many")
	cmd.Flags().BoolVar(&f.replayed, "replayed", false, "include records that were already replayed")
	return cmd
}

// run prints while it reads. A queue of dead letters may be large or slow, and the first rows often
// answer the question.
func (d *dlqList) run(ctx context.Context, filter dlq.Filter, target string) error {
	_, name, err := d.open(target, d.choose.force)
	if err != nil {
		return err
	}
	out := letterRows{print: d.print, table: lettersTable(d.print), said: time.Now()}
	seen := tally{name: name}
	var broken error
	src, whole, err := d.lookAsking(ctx, target, d.choose.force, d.choose.look, func(l dlq.Letter) bool {
		switch {
		case l.Replayed && !d.replayed:
			seen.replayed++
		case !filter.Match(l.Delivery, l.Facts):
			seen.others++
		default:
			seen.shown++
			broken = out.add(l)
		}
		if broken == nil {
			broken = out.due()
		}
		return broken == nil && seen.shown < d.choose.number
	})
	if perr := out.flush(); broken == nil {
		broken = perr
	}
	if broken != nil {
		return broken
	}
	seen.whole, seen.full = whole, seen.shown >= d.choose.number
	if err == nil && seen.full && filter.All() {
		if n, counted, derr := d.depth(ctx, src); counted && derr == nil {
			seen.there = max(n, seen.shown)
		}
	}
	if err == nil || seen.shown+seen.others+seen.replayed > 0 {
		d.print.Notef("%s", seen.text(err != nil))
	}
	return err
}

// tally is how far a list has come.
type tally struct {
	name                    string
	shown, others, replayed int
	there                   int  // how many the broker counts; 0: not known
	whole                   bool // the end was reached
	full                    bool // as many are shown as were asked for
}

// text says how many of the dead letters the list shows.
func (t tally) text(broken bool) string {
	looked := t.shown + t.others
	text := ""
	switch {
	case broken:
		text = fmt.Sprintf("%d shown of the first %d; the rest was not read", t.shown, looked)
	case t.full && t.there == t.shown:
		text = fmt.Sprintf("%d of %d shown", t.shown, t.there)
	case t.full && t.there > 0:
		text = fmt.Sprintf("%d of %d shown; raise -n for more", t.shown, t.there)
	case t.full:
		text = fmt.Sprintf("%d shown of the first %d; there may be more: raise -n", t.shown, looked)
	case looked > 0 && t.whole:
		text = fmt.Sprintf("%d of %d shown", t.shown, looked)
	case looked > 0:
		text = fmt.Sprintf("%d of more than %d shown", t.shown, looked)
	case t.whole:
		text = "no dead letters in " + t.name
	default:
		text = "none of the dead letters in " + t.name + " could be seen"
	}
	if t.replayed > 0 {
		text += fmt.Sprintf(", %d replayed: --replayed lists them", t.replayed)
	}
	return text
}

// The list is printed in parts while it is read: at most so many rows together, and
// none waits longer than this for the next.
const (
	partRows = 20
	partTime = time.Second
)

// letterRows prints dead letters as they come.
type letterRows struct {
	print *cli.Printer
	n     int
	table *table.Table
	said  time.Time // when the last part was printed
}

func (r *letterRows) add(l dlq.Letter) error {
	r.n++
	if r.print.JSON {
		return r.print.Line(newLetterLine(r.n, l))
	}
	row := []string{dlq.ID(l.Delivery), keytext.Of(l.Key), l.Facts.Reason, "", when(l.Facts.At), cutRunes(l.Facts.Error, 100)}
	if l.Facts.Attempts > 0 {
		row[3] = strconv.Itoa(l.Facts.Attempts)
	}
	for i := range row {
		if row[i] == "" {
			row[i] = "-"
		}
		row[i] = cli.Printable(row[i])
	}
	r.table.Add(row...)
	return nil
}

// due prints what has waited long enough.
func (r *letterRows) due() error {
	if r.table.Len() < partRows && time.Since(r.said) < partTime {
		return nil
	}
	return r.flush()
}

// flush prints the rows read since the last part.
func (r *letterRows) flush() error {
	r.said = time.Now()
	return r.print.Rows(r.table)
}

// lettersTable is the table of dead letters. An id is never cut: show needs it whole.
func lettersTable(p *cli.Printer) *table.Table {
	return p.Table(table.Column{Name: "id", Min: 20, Wrap: true}, table.Column{Name: "key", Min: 8}, table.Column{Name: "reason", Min: 10, Wrap: true},
		table.Column{Name: "attempts", Right: true}, table.Column{Name: "at", Right: true}, table.Column{Name: "error", Min: 24, Wrap: true, Below: true})
}

// when is a time of today by its hour, another by its date too.
func when(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	at = at.Local()
	if time.Since(at) < 20*time.Hour {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

// cutRunes cuts between characters: half of one would garble the rest of a terminal's line.
func cutRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
