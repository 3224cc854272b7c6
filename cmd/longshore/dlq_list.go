package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/internal/inspect"
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

func (a *app) dlqList() *cobra.Command {
	var f dlqFilter
	var all bool
	cmd := &cobra.Command{
		Use:   "list TARGET",
		Short: "List dead letters with the reason of each",
		Long: "list shows dead letters, the oldest first. Where looking has a cost it is refused, and the cost\n" +
			"named; --force looks all the same. Of a Kafka topic it leaves out what was replayed.",
		Example: "  longshore dlq list 'kafka://localhost/orders.dlq' --since 24h --reason undecodable",
		Args:    withTarget(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter(cmd)
			if err != nil {
				return err
			}
			return a.runDLQList(cmd.Context(), f, filter, all, args[0])
		},
	}
	f.flags(cmd, 20, "`how many` to show")
	cmd.Flags().BoolVar(&all, "replayed", false, "list what was replayed too")
	return cmd
}

func (a *app) runDLQList(ctx context.Context, f dlqFilter, filter dlq.Filter, all bool, target string) error {
	src, name, err := a.letters(target, f.force)
	if err != nil {
		return err
	}
	var shown []dlq.Letter
	matching, others, replayed := 0, 0, 0
	whole, err := a.lookAt(ctx, src, f.force, f.look, func(l dlq.Letter) bool {
		switch {
		case l.Replayed && !all:
			replayed++
		case !filter.Match(l.Delivery, l.Facts):
			others++
		default:
			if matching++; len(shown) < f.number {
				shown = append(shown, l)
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	if err := a.printLetters(shown); err != nil {
		return err
	}
	a.print.Notef("%s", listed(name, len(shown), matching, others, replayed, whole))
	return nil
}

// listed says how much of what is there the list shows.
func listed(name string, shown, matching, others, replayed int, whole bool) string {
	total := strconv.Itoa(matching + others)
	if !whole {
		total = "more than " + total
	}
	switch {
	case matching+others > 0:
		total = strconv.Itoa(shown) + " of " + total + " shown"
	case whole:
		total = "no dead letters in " + name
	default:
		total = "none of the dead letters in " + name + " could be seen"
	}
	if matching > shown {
		total += ", " + strconv.Itoa(matching-shown) + " more match: raise -n"
	}
	if replayed > 0 {
		total += ", " + strconv.Itoa(replayed) + " replayed: --replayed lists them"
	}
	return total
}

func (a *app) printLetters(shown []dlq.Letter) error {
	if a.print.JSON {
		for i, l := range shown {
			if err := a.print.Line(newLetterLine(i+1, l)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(shown) == 0 {
		return nil
	}
	t := cli.Table{Header: []string{"id", "key", "reason", "attempts", "at", "error"}, Right: map[int]bool{3: true}}
	for _, l := range shown {
		row := []string{dlq.ID(l.Delivery), string(l.Key), l.Facts.Reason, "", when(l.Facts.At), cutRunes(l.Facts.Error, 100)}
		if l.Facts.Attempts > 0 {
			row[3] = strconv.Itoa(l.Facts.Attempts)
		}
		for i := range row {
			if row[i] == "" {
				row[i] = "-"
			}
			row[i] = cli.Printable(row[i])
		}
		t.Rows = append(t.Rows, row)
	}
	return a.print.Printf("%s\n", strings.Join(t.Lines(), "\n"))
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

func cutRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
