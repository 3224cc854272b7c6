package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/longshore-go/longshore/internal/testkit/history"
)

// faultCost is what a fault cost the consumers, until the next one began.
type faultCost struct {
	at       int64
	name     string
	gap      time.Duration // the longest time in which no handler started
	repeats  int           // starts of messages that had started before
	canceled int           // handlers whose context ended
}

// costs measures each fault.
func costs(events []history.Event) (all []faultCost) {
	started := map[string]bool{}
	last := int64(0) // start of a handler, or of the fault
	for _, e := range events {
		if e.Kind == history.Fault {
			all, last = append(all, faultCost{at: e.At, name: e.Text}), e.At
		}
		if e.Kind == history.Started {
			again := started[e.ID]
			started[e.ID] = true
			if len(all) > 0 {
				one := &all[len(all)-1]
				one.gap = max(one.gap, time.Duration(e.At-last))
				if again {
					one.repeats++
				}
			}
			last = e.At
		}
		if e.Kind == history.Canceled && len(all) > 0 {
			all[len(all)-1].canceled++
		}
	}
	return all
}

// printCosts prints them as a table.
func printCosts(w io.Writer, all []faultCost) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "fault at\tlongest pause\trepeats\tcanceled\tfault")
	for _, c := range all {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\n", time.Unix(0, c.at).UTC().Format("15:04:05"), c.gap.Round(10*time.Millisecond), c.repeats, c.canceled, c.name)
	}
	_ = t.Flush()
}
