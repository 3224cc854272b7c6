package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/internal/keytext"
	"github.com/longshore-go/longshore/internal/table"
)

// dlqShow is `longshore dlq show`.
type dlqShow struct {
	deadLetters

	force, raw bool
	mask       []string // fields of a JSON body, and headers, that are hidden
	most       int      // how many messages are looked at
}

func newDLQShow(a *app) *cobra.Command {
	f := dlqShow{deadLetters: deadLetters{a}}
	cmd := &cobra.Command{
		Use:     "show TARGET ID",
		Short:   "Show one dead letter: why it is here, headers, body",
		Long:    "show prints the failure, the headers and the body of the dead letter with an id shown by list.\nA binary body is printed in hex; --raw prints the body alone, unchanged.",
		Example: "  longshore dlq show 'kafka://localhost/orders.dlq' 01J9… --mask card",
		Args:    exactly("TARGET", "ID"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args[0], args[1]) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.raw, "raw", false, "print the body only, as it is")
	fs.StringArrayVar(&f.mask, "mask", nil, "hide this field of a JSON body and the header of this name; repeat for more")
	fs.BoolVar(&f.force, "force", false, "look even if that changes the queue")
	fs.IntVar(&f.most, "look", 10_000, "look at no more than this many messages")
	return cmd
}

// masks are the fields to hide: each as it is given, and its parts between commas too, as
// hiding too much does no harm.
func (d *dlqShow) masks() []string {
	all := slices.Clone(d.mask)
	for _, m := range d.mask {
		if strings.Contains(m, ",") {
			all = append(all, strings.Split(m, ",")...)
		}
	}
	return all
}

// run finds the message by the id that list prints or that the consumer has logged.
func (d *dlqShow) run(ctx context.Context, target, id string) error {
	if d.raw && len(d.mask) > 0 {
		return &cli.UsageError{Text: "--raw and --mask exclude each other", Hint: "give one of them"}
	}
	if d.raw && d.print.JSON {
		return &cli.UsageError{Text: "--raw and --json exclude each other", Hint: "--json includes the body; a binary one is in base64"}
	}
	if d.most < 1 {
		return &cli.UsageError{Text: "--look must be at least 1", Hint: "it is the number of messages to look at"}
	}
	_, name, err := d.open(target, d.force)
	if err != nil {
		return err
	}
	var found *dlq.Letter
	_, _, err = d.lookAsking(ctx, target, d.force, d.most, func(l dlq.Letter) bool {
		if dlq.Named(l.Delivery, id) {
			found = &l
		}
		return found == nil
	})
	switch {
	case err != nil:
		return err
	case found == nil:
		return &longshore.Error{Code: longshore.CodeNotFound, Op: fmt.Sprintf("show dead letter %.64q of %s", id, name),
			Err: fmt.Errorf("no such id among the first %d", d.most), Hint: "see longshore dlq list"}
	case d.raw:
		_, err := d.streams.Out.Write(found.Body)
		return err
	case d.print.JSON:
		return d.print.Document(maskedLine(*found, d.masks()))
	}
	return d.print.Printf("%s", letterText(*found, d.masks(), d.print.TableWidth()))
}

// maskedLine is the JSON of a letter, with masked fields and headers.
func maskedLine(l dlq.Letter, mask []string) letterLine {
	line := newLetterLine(1, l)
	if len(mask) == 0 {
		return line
	}
	for i := range line.Message.Headers {
		if slices.Contains(mask, line.Message.Headers[i].Name) {
			line.Message.Headers[i].Value = masked
		}
	}
	if len(l.Body) > 0 {
		text := bodyText(l.Body, mask)
		line.Message.Body, line.Message.BodyBase64 = &text, ""
	}
	return line
}

// pairs is a table of names and their values.
func pairs(width int) *table.Table {
	return &table.Table{Width: width, NoHeader: true, Columns: []table.Column{{Min: 16, Wrap: true}, {Min: 20, Wrap: true}}}
}

// letterText is a dead letter for people, at most width wide; 0 is no limit.
func letterText(l dlq.Letter, mask []string, width int) string {
	f := l.Facts
	t := pairs(width)
	add := func(name, value string) {
		if value != "" {
			t.Add(name, cli.Printable(value))
		}
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	add("id", dlq.ID(l.Delivery))
	add("key", keytext.Of(l.Key))
	add("type", l.Type)
	add("given up by", f.Who)
	add("reason", f.Reason)
	add("error", f.Error)
	add("attempts", number(f.Attempts))
	if !f.At.IsZero() {
		add("at", f.At.Local().Format(time.RFC3339))
	}
	add("from", f.Source)
	add("by", f.By)
	add("replays", number(f.Replays))
	if l.Replayed {
		add("replayed", "yes; the topic keeps it")
	}
	for _, d := range f.Details {
		add(d.Name, d.Value)
	}
	text := strings.Join(t.Lines(), "\n") + "\n"
	if len(l.Headers) > 0 {
		h := pairs(width)
		for _, x := range l.Headers {
			value := headerOf(x.Value)
			if slices.Contains(mask, x.Name) {
				value = masked
			}
			h.Add("  "+cli.Printable(x.Name), cli.Printable(value))
		}
		text += "headers\n" + strings.Join(h.Lines(), "\n") + "\n"
	}
	return text + fmt.Sprintf("body, %d B %s\n", len(l.Body), cli.Printable(l.ContentType)) + bodyText(l.Body, mask)
}

func headerOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
		return "0x" + hex.EncodeToString(v)
	}
	return fmt.Sprint(v)
}

const masked = "***"

// bodyText is the body for a terminal. What is to be masked is hidden with all of the
// body if it cannot be found.
func bodyText(body []byte, mask []string) string {
	if len(mask) > 0 && len(body) > 0 {
		var v any
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		if dec.Decode(&v) != nil || dec.More() {
			return "(not JSON, so --mask hides the whole body)\n"
		}
		out, err := json.Marshal(hide(v, mask))
		if err != nil {
			return "(hidden by --mask)\n"
		}
		body = out
	}
	switch {
	case len(body) == 0:
		return ""
	case !utf8.Valid(body):
		return hex.Dump(body)
	}
	var b strings.Builder
	for line := range strings.Lines(string(body)) {
		b.WriteString(cli.Printable(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}

// hide masks fields at any depth: a card number is rarely at the top of a document.
func hide(v any, mask []string) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if slices.Contains(mask, k) {
				v[k] = masked
			} else {
				v[k] = hide(v[k], mask)
			}
		}
	case []any:
		for i := range v {
			v[i] = hide(v[i], mask)
		}
	}
	return v
}
