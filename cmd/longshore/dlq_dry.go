package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/transport"
)

// dryHint replaces the question where no terminal can show it. Choosing messages needs a look
// at them, and that may have a cost.
func dryHint(src transport.Source, filter dlq.Filter) string {
	hint := "--yes does it, --dry-run shows what it would do"
	if costOf(src) != "" && !filter.All() {
		hint += "; choosing reads the messages, which needs --force where that counts as a delivery"
	}
	return hint
}

// countInstead is for a dry run whose look was refused: where all are meant the broker
// says how many there are, and nothing is taken.
func (d *dlqReplay) countInstead(ctx context.Context, src transport.Source, filter dlq.Filter, refused error) (n int, counted bool) {
	if !errors.Is(refused, longshore.CodeUnsupported) || !filter.All() || d.choose.force {
		return 0, false
	}
	n, counted, err := d.depth(ctx, src)
	if d.choose.number > 0 {
		n = min(n, d.choose.number)
	}
	return n, counted && err == nil
}

// showCounted is the answer of a dry run that has not looked.
func (d *dlqReplay) showCounted(res dlqResult, n int) error {
	to := d.to
	res.Done, res.Kept, res.Unknown, res.To = n, 0, 0, nil
	if to != "" {
		res.To = map[string]int{to: n}
	} else {
		to = "where each came from"
	}
	d.print.Notef("the messages were counted but not read, because reading counts as a delivery; --force reads them and shows the destination of each")
	switch {
	case d.print.JSON:
		return d.print.Document(res)
	case n == 0:
		return d.print.Printf("would send nothing from %s\n", res.Target)
	}
	return d.print.Printf("would send %s from %s to %s; run again with --yes\n", messages(n), res.Target, cli.Printable(to))
}

// parseRate reads "50/s", "100/m", "5/h" or "50" a second; "" is no limit.
func parseRate(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	number, unit, _ := strings.Cut(s, "/")
	n, err := strconv.ParseFloat(number, 64)
	per, known := map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	if err != nil || !known || !(n > 0) || n > 1e9 {
		return 0, &cli.UsageError{Text: fmt.Sprintf("--rate %.32q is not a rate", s), Hint: "write for example 50/s, 100/m or 5/h"}
	}
	return n / per.Seconds(), nil
}
