package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/fleet"
	"github.com/longshore-go/longshore/internal/table"
	"github.com/longshore-go/longshore/middleware/throttle"
)

func (c *ctl) statusVerb() *cobra.Command {
	return &cobra.Command{
		Use: "status [CONTAINER]", Short: "Show all containers, and what limits each", Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.status(cmd.Context(), args) },
	}
}

// shown is a container of an instance.
type shown struct {
	Instance string `json:"instance"`
	admin.Container
}

// status asks all instances and prints those that answer. The ones that do not are named after the
// table, and make the exit status 6: a script must not take half a fleet for the whole.
func (c *ctl) status(ctx context.Context, args []string) error {
	targets, err := c.targets() //nolint:contextcheck // reading a file takes no context
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var all []shown
	var failed []error
	for _, t := range targets {
		list, err := c.containers(ctx, t)
		if err != nil {
			failed = append(failed, err) // the other instances are still shown
			continue
		}
		for _, v := range list {
			if len(args) == 0 || v.Name == args[0] {
				all = append(all, shown{t.addr, v})
			}
		}
	}
	if len(args) > 0 && len(all) == 0 && len(failed) == 0 {
		return &longshore.Error{Code: longshore.CodeNotFound, Op: fmt.Sprintf("show container %q", args[0]), Err: errors.New("no instance has it"), Hint: "see longshore ctl status"}
	}
	if len(failed) == len(targets) {
		return errors.Join(failed...) // no instance responded: there are no containers to show
	}
	if err := c.show(all, len(targets) > 1); err != nil {
		return err
	}
	return errors.Join(failed...)
}

func (c *ctl) containers(ctx context.Context, t target) ([]admin.Container, error) {
	var answer struct{ Containers []admin.Container }
	err := c.call(ctx, t, "GET", "/api/containers", nil, &answer)
	return answer.Containers, err
}

// show leaves out the column of the instances where only one was asked.
func (c *ctl) show(all []shown, instances bool) error {
	if c.print.JSON {
		if all == nil {
			all = []shown{}
		}
		return c.print.Document(map[string]any{"containers": all})
	}
	if len(all) == 0 {
		c.print.Notef("no containers")
		return nil
	}
	t := c.print.Table(table.Column{Name: "container", Min: 12}, table.Column{Name: "source", Min: 12, Drop: 2}, table.Column{Name: "state", Tone: containerTone},
		table.Column{Name: "rate/s", Right: true}, table.Column{Name: "backlog", Right: true}, table.Column{Name: "oldest", Right: true},
		table.Column{Name: "workers", Right: true}, table.Column{Name: "p50", Right: true, Drop: 4}, table.Column{Name: "p99", Right: true, Drop: 3},
		table.Column{Name: "permits", Right: true, Drop: 5}, table.Column{Name: "failed", Right: true, Min: 10, Drop: 1}, table.Column{Name: "dead", Right: true},
		table.Column{Name: "why", Below: true})
	for _, v := range all {
		name := v.Name
		if instances {
			name += "@" + v.Instance
		}
		backlog, permits := "–", "–"
		if v.Backlog != nil {
			backlog = fmt.Sprint(*v.Backlog)
		}
		if v.Throttle != nil && v.Throttle.Permits >= 0 {
			permits = fmt.Sprint(v.Throttle.Permits)
		}
		row := []string{name, v.Transport + " " + v.Source, string(v.State), fmt.Sprintf("%.0f", v.Rate), backlog, age(v.Oldest),
			fmt.Sprintf("%d/%d", v.Workers.Now, v.Workers.Max), took(v.HandlerP50), took(v.HandlerP99), permits, kinds(v.Failed), fmt.Sprint(v.Dead), why(v.Container)}
		for i := range row {
			row[i] = cli.Printable(row[i])
		}
		t.Add(row...)
	}
	c.print.NoteHidden(t)
	if len(all) == 1 && all[0].ConsumerTag != "" {
		c.print.Notef("consumer tag %s", cli.Printable(all[0].ConsumerTag))
	}
	return c.print.Rows(t)
}

// age has one unit and few digits: the last column, which names the problem, needs the width.
func age(seconds float64) string {
	switch {
	case seconds < 100:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 6000:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}

// why is the sentence of the container itself, unless all is well.
func why(v admin.Container) string {
	var parts []string
	switch v.Limited.By {
	case "", container.ByPolicy, container.ByMax: // nothing is the matter
	default:
		parts = append(parts, v.Limited.Text)
	}
	if v.Reason != "" && len(parts) == 0 { // of a service of an older version
		parts = append(parts, v.Reason)
	}
	if l := v.Throttle; l != nil && v.Limited.By != container.ByPermits && v.Limited.By != container.ByRate {
		if l.Operator != nil {
			parts = append(parts, throttledBy("an operator", l.Operator))
		} else if l.Fleet != nil {
			parts = append(parts, throttledBy("the fleet", l.Fleet))
		}
	}
	return strings.Join(parts, "; ")
}

// throttledBy says who limits a container and until when: the question that is asked first when a
// queue grows.
func throttledBy(who string, o *throttle.Override) string {
	if o.By != "" {
		who = o.By
	}
	text := "throttled by " + who
	if !o.At.IsZero() {
		text += " since " + when(o.At)
	}
	if !o.Until.IsZero() {
		text += " until " + when(o.Until)
	}
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}

// took is a handler's time; – where none has ended lately.
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d <= 0:
		return "–"
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// kinds are the failures by code, the most first.
func kinds(failed map[longshore.Code]int64) string {
	codes := slices.SortedFunc(maps.Keys(failed), func(a, b longshore.Code) int {
		return cmp.Or(cmp.Compare(failed[b], failed[a]), cmp.Compare(a, b))
	})
	parts := make([]string, 0, 3)
	for i, code := range codes {
		if i == 2 && len(codes) > 3 {
			parts = append(parts, fmt.Sprintf("+%d kinds", len(codes)-2))
			break
		}
		parts = append(parts, fmt.Sprintf("%d %s", failed[code], code))
	}
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ", ")
}

func (c *ctl) eventsVerb() *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use: "events", Short: "Follow the events of an instance", Args: atMost(0),
		Long: "events prints one line for each event of the first instance, until Ctrl-C or --number lines.",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.events(cmd.Context(), n) },
	}
	cmd.Flags().IntVarP(&n, "number", "n", 0, "end after this many events; 0: never")
	return cmd
}

// events follows one instance only: events of several carry no common order.
func (c *ctl) events(ctx context.Context, n int) error {
	targets, err := c.targets() //nolint:contextcheck // reading a file takes no context
	if err != nil {
		return err
	}
	client := fleet.NewClient(targets[0].instance(), dialFor)
	defer client.Close()
	enough, printed := errors.New("enough"), 0
	err = client.Stream(ctx, "/api/events", "", func(kind string, data []byte) error {
		var e admin.Event
		if kind != "event" || json.Unmarshal(data, &e) != nil {
			return nil // of another version
		}
		if err := c.printEvent(e); err != nil {
			return err
		}
		if printed++; printed == n {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) || ctx.Err() != nil {
		return nil // interrupted: that is how it ends
	}
	return explained(ctx, err)
}

func (c *ctl) printEvent(e admin.Event) error {
	if c.print.JSON {
		return c.print.Line(e)
	}
	text := e.Text
	if e.By != "" {
		text += ", by " + e.By
	}
	if e.Reason != "" && !strings.Contains(text, e.Reason) {
		text += ": " + e.Reason
	}
	return c.print.Printf("%s  %s  %-12s  %s\n", e.Time.Local().Format("15:04:05.000"), cli.Printable(e.Container), cli.Printable(e.Kind), cli.Printable(text))
}
