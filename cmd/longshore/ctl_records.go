package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/table"
)

// recordVerbs look at and steer single records.
func (c *ctl) recordVerbs() []*cobra.Command {
	return []*cobra.Command{
		c.whyVerb(), c.inflightVerb(), c.stuckVerb(),
		c.oneVerb("retry-now", "Let a parked record have its next attempt at once", false),
		c.oneVerb("dead-letter", "Give up on a record: move it to the dead-letter destination", true),
		c.oneVerb("release", "Return a record to the broker without counting an attempt", true),
		c.seekVerb(),
	}
}

// askAll asks every instance the same and hands on the answers. An instance that
// fails does not hide the others.
func askAll[T any](ctx context.Context, c *ctl, path string, each func(t target, answer T, several bool) error) error {
	targets, err := c.targets() //nolint:contextcheck // reading a file takes no context
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var failed []error
	for _, t := range targets {
		var answer T
		if err := c.call(ctx, t, "GET", path, nil, &answer); err != nil {
			failed = append(failed, err)
			continue
		}
		if err := each(t, answer, len(targets) > 1); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

func (c *ctl) whyVerb() *cobra.Command {
	return &cobra.Command{
		Use: "why CONTAINER", Short: "Say in one sentence what limits a container now", Args: exactly("CONTAINER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return askAll(cmd.Context(), c, containerPath(args[0], "why"), func(t target, a map[string]any, several bool) error {
				if c.print.JSON {
					a["instance"] = t.addr
					return c.print.Line(a)
				}
				name := args[0]
				if several {
					name += "@" + t.addr
				}
				return c.print.Printf("%s     %s\n", cli.Printable(name), cli.Printable(fmt.Sprint(a["text"])))
			})
		},
	}
}

// foundRecord is a record of an instance.
type foundRecord struct {
	Instance string `json:"instance"`
	admin.Record
}

// found is what the instances hold.
type found struct {
	list    []foundRecord
	total   int
	several bool // instances
	none    bool // no instance has answered
}

// records asks every instance for records.
func (c *ctl) records(ctx context.Context, path string) (f found, err error) {
	type answer struct {
		Total   int
		Records []admin.Record
	}
	f.none = true
	err = askAll(ctx, c, path, func(t target, a answer, more bool) error {
		f.several, f.none = more, false
		f.total += a.Total
		for _, r := range a.Records {
			f.list = append(f.list, foundRecord{t.addr, r})
		}
		return nil
	})
	return f, err
}

// inflightVerb bounds --number, because a container may hold tens of thousands of records.
func (c *ctl) inflightVerb() *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use: "inflight CONTAINER", Short: "List what a container holds: running, parked, waiting", Args: exactly("CONTAINER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 1 || n > 1000 {
				return &cli.UsageError{Text: "--number must be from 1 to 1000", Hint: "it is how many records of each instance to show"}
			}
			path := containerPath(args[0], "inflight") + "?" + url.Values{"limit": {strconv.Itoa(n)}}.Encode()
			f, err := c.records(cmd.Context(), path)
			if perr := c.printRecords(f); perr != nil {
				return perr
			}
			return err
		},
	}
	cmd.Flags().IntVarP(&n, "number", "n", 100, "show at most this many records of each instance")
	return cmd
}

// printRecords prints one table for all instances. Where an instance did not answer and the
// others hold nothing, it prints nothing: "none" would claim to know about all of them.
func (c *ctl) printRecords(f found) error {
	list, total, several := f.list, f.total, f.several
	if f.none {
		return nil // "none" would be an answer
	}
	if c.print.JSON {
		if list == nil {
			list = []foundRecord{}
		}
		return c.print.Document(map[string]any{"total": total, "records": list})
	}
	if len(list) == 0 {
		c.print.Notef("none")
		return nil
	}
	t := c.print.Table(table.Column{Name: "record", Min: 16, Wrap: true}, table.Column{Name: "state", Tone: recordTone}, table.Column{Name: "key", Min: 10},
		table.Column{Name: "attempt", Right: true}, table.Column{Name: "age", Right: true}, table.Column{Name: "due", Right: true})
	if several {
		t.Columns = append(t.Columns, table.Column{Name: "instance", Min: 12, Drop: 1})
	}
	for _, r := range list {
		due := "–"
		if !r.Due.IsZero() {
			due = r.Due.Local().Format("15:04:05")
		}
		row := []string{r.Record.Record, string(r.State), r.Key, attemptOf(r.Attempt, r.Of), age(r.Age), due}
		if several {
			row = append(row, r.Instance)
		}
		for i := range row {
			row[i] = cli.Printable(row[i])
		}
		t.Add(row...)
	}
	if err := c.print.Rows(t); err != nil {
		return err
	}
	if len(list) < total {
		c.print.Notef("%d of %d shown", len(list), total)
	}
	return nil
}

// stuckVerb prints what it found before it fails for an instance that did not answer: stacks
// are wanted most when something is wrong.
func (c *ctl) stuckVerb() *cobra.Command {
	return &cobra.Command{
		Use: "stuck CONTAINER", Short: "Show handlers that do not return, with their stacks", Args: exactly("CONTAINER"),
		Long: "stuck needs an operator's token, because stacks reveal internals. Dumping the stacks pauses the process for a moment.",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := c.records(cmd.Context(), containerPath(args[0], "stuck"))
			if perr := c.printRecords(f); perr != nil {
				return perr
			}
			for _, r := range f.list {
				if c.print.JSON || r.Stack == "" {
					continue
				}
				if perr := c.print.Printf("\n%s, %s:\n%s\n", cli.Printable(r.Record.Record), age(r.Age), r.Stack); perr != nil {
					return perr
				}
			}
			return err
		},
	}
}

// oneVerb is a verb for one record, which one of the instances has.
func (c *ctl) oneVerb(verb, short string, interrupts bool) *cobra.Command {
	var reason string
	var interrupt bool
	cmd := &cobra.Command{
		Use: verb + " CONTAINER RECORD", Short: short, Args: exactly("CONTAINER", "RECORD"),
		Example: "  longshore ctl inflight orders\n  longshore ctl " + verb + " orders 01J9X4F",
		Long: "RECORD is what `ctl inflight` shows, the producer's message id, or topic/partition/position. Every instance is asked until one has it.\n" +
			"A message that waits at the broker for its next attempt is not found.",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]any{"record": args[1]}
			if interrupt {
				body["interrupt"] = true
			}
			return c.oneRecord(cmd.Context(), args[0], verb, with(body, "reason", reason))
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "recorded with the event and in a dead letter's headers")
	if interrupts {
		cmd.Flags().BoolVar(&interrupt, "interrupt", false, "even if its handler is running: cancel the handler's context and ignore its result")
	}
	return cmd
}

// oneRecord sends a change about one record to the instances one by one. Only one of them can hold the
// record, so "not found" is an error only if all of them say it.
func (c *ctl) oneRecord(ctx context.Context, name, verb string, body map[string]any) error {
	targets, err := c.targets() //nolint:contextcheck // reading a file takes no context
	if err != nil {
		return err
	}
	path := containerPath(name, "records/"+verb)
	if c.dryRun {
		if len(targets) > 1 {
			c.print.Notef("the instances are asked in turn until one has the record")
		}
		return c.wouldAsk(targets, "POST", path, body)
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var missing error
	for _, t := range targets {
		var a map[string]any
		err := c.call(ctx, t, "POST", path, body, &a)
		switch {
		case errors.Is(err, longshore.CodeNotFound):
			missing = err
			continue
		case err != nil:
			return err
		case c.print.JSON:
			return c.print.Document(a)
		}
		return c.print.Printf("%s\n", cli.Printable(fmt.Sprintf("%s     %v: %v (%v, attempt %.0f)", name, a["done"], at(a, "record", "record"), at(a, "record", "state"), number(at(a, "record", "attempt")))))
	}
	return missing
}

// seekFlags say where to.
type seekFlags struct {
	to, topic, reason string
	partition         int32
	yes               bool
}

// seekVerb wants --yes even for one partition: a position that moves forward skips records
// for good, and nothing that ctl could print afterwards brings them back.
func (c *ctl) seekVerb() *cobra.Command {
	var f seekFlags
	cmd := &cobra.Command{
		Use: "seek CONTAINER --to start|end|OFFSET|TIME", Short: "Move the position of a Kafka group, while it runs", Args: exactly("CONTAINER"),
		Long: "Every instance named with --admin drains its own partitions, commits the new position and continues from there; other partitions are not touched.\n" +
			"Partitions of other instances stay where they are. Moving forward skips records; moving back handles records again.",
		Example: "  longshore ctl seek billing --to 2026-01-31T06:00:00Z --yes\n  longshore ctl seek billing --topic invoices --partition 3 --to 120884 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := f.body(cmd.Flags().Changed("partition"))
			if err != nil {
				return err
			}
			if !f.yes && !c.dryRun {
				return &cli.UsageError{Text: "seek skips or repeats records", Hint: "run it with --dry-run to see the request, or with --yes to carry it out"}
			}
			return c.change(cmd.Context(), change{method: "POST", path: containerPath(args[0], "seek"), body: body,
				tell: func(a map[string]any) string { return tellSeek(args[0], a) }})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.to, "to", "", "new `position`: start, end, an offset in one --partition, or a time such as 2026-01-31T06:00:00Z")
	fs.StringVar(&f.topic, "topic", "", "only this topic")
	fs.Int32Var(&f.partition, "partition", 0, "only this partition")
	fs.StringVar(&f.reason, "reason", "", "recorded with the event")
	fs.BoolVar(&f.yes, "yes", false, "do it")
	return cmd
}

// body checks the flags before anything is sent. An offset belongs to one partition; a whole topic can
// go to its start, its end or a time.
func (f *seekFlags) body(one bool) (map[string]any, error) {
	body := map[string]any{}
	offset, err := strconv.ParseInt(f.to, 10, 64)
	when, terr := time.Parse(time.RFC3339, f.to)
	switch {
	case f.to == "start" || f.to == "end":
		body[f.to] = true
	case err == nil && offset >= 0 && one:
		body["offset"] = offset
	case err == nil && offset >= 0:
		return nil, &cli.UsageError{Text: "an offset is a number in one partition", Hint: "add --partition, and --topic if the group reads several"}
	case terr == nil:
		body["time"] = when
	default:
		return nil, &cli.UsageError{Text: fmt.Sprintf("--to %q is not a position", f.to), Hint: "use start, end, an offset, or a time as 2026-01-31T06:00:00Z"}
	}
	if one {
		if f.partition < 0 {
			return nil, &cli.UsageError{Text: "--partition must be 0 or more", Hint: "leave it out for all"}
		}
		body["partition"] = f.partition
	}
	return with(with(body, "topic", f.topic), "reason", f.reason), nil
}

// tellSeek names each partition with its old and new position: that line is what a person needs to go
// back.
func tellSeek(name string, a map[string]any) string {
	moved, _ := a["moved"].([]any)
	var parts []string
	for _, m := range moved {
		parts = append(parts, fmt.Sprintf("%v/%.0f %.0f → %.0f", at(m, "topic"), number(at(m, "partition")), number(at(m, "from")), number(at(m, "to"))))
	}
	return fmt.Sprintf("%s     %s moved: %s", name, counted(len(moved), "partition"), strings.Join(parts, ", "))
}

// attemptOf is the attempt of how many; one that counted no failure goes beyond.
func attemptOf(n, of int) string {
	if of <= 0 || n > of {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d/%d", n, of)
}
