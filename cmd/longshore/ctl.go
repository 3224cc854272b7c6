package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
)

// ctl looks at and steers running instances through their admin API.
type ctl struct {
	*app
	admin     string
	tokenFile string
	dryRun    bool
}

func newCtl(a *app) *cobra.Command {
	c := &ctl{app: a}
	cmd := &cobra.Command{
		Use:   "ctl",
		Short: "Look at and steer running instances",
		Long: "ctl talks to the admin API of running instances: --admin names them, else the file of -c, LONGSHORE_ADMIN,\n" +
			"or admin.listen of ./" + config.DefaultFile + ", if there is one.\n" +
			"Changes need an operator's token: LONGSHORE_TOKEN, --token-file, or on this host the one that the instance made.",
		Example: "  longshore ctl status\n" +
			"  longshore ctl throttle orders --permits 0 --for 10m --reason \"ledger down\"",
		Args: verbOf,
		RunE: func(*cobra.Command, []string) error {
			return &cli.UsageError{Text: "ctl needs a command", Hint: "commands: status, why, pause, resume, reconnect, scale, throttle, drain, events, or for one record inflight, stuck, retry-now, dead-letter, release; for a Kafka position seek"}
		},
	}
	f := cmd.PersistentFlags()
	f.StringVar(&c.admin, "admin", "", "admin APIs as `host:port`, separated by commas (default admin.listen of the file, "+admin.DefaultAddr+")")
	f.StringVarP(&c.app.file, "config", "c", "", "configuration `file` of the service, whose admin.listen is used (default $LONGSHORE_CONFIG, else ./"+config.DefaultFile+")")
	f.StringVar(&c.tokenFile, "token-file", "", "`file` that holds the token")
	f.BoolVar(&c.dryRun, "dry-run", false, "show the request without sending it")
	cmd.AddCommand(c.statusVerb(), c.pauseVerb(), c.resumeVerb(), c.reconnectVerb(), c.scaleVerb(), c.throttleVerb(), c.drainVerb(), c.eventsVerb())
	cmd.AddCommand(c.recordVerbs()...)
	for _, verb := range cmd.Commands() {
		if strings.Contains(verb.Use, "CONTAINER") {
			verb.ValidArgsFunction = c.completeTargets
		}
	}
	return cmd
}

// change is a request that changes something on every instance.
type change struct {
	method, path string
	body         map[string]any
	// tell is one line about the answer.
	tell func(answer map[string]any) string
	once bool // one instance is enough: it passes it on
}

// change sends one change to every instance that --admin names, in their order. It stops at the first
// refusal and says how many obeyed: a value that one instance refuses, the next ones would refuse too.
func (c *ctl) change(ctx context.Context, ch change) error {
	targets, err := c.targets() //nolint:contextcheck // reading a file takes no context
	if err != nil {
		return err
	}
	if ch.once {
		targets = targets[:1]
	}
	if c.dryRun {
		return c.wouldAsk(targets, ch.method, ch.path, ch.body)
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	began := time.Now()
	var answers []map[string]any
	for _, t := range targets {
		var answer map[string]any
		err := c.call(ctx, t, ch.method, ch.path, ch.body, &answer)
		if err != nil {
			if len(answers) > 0 {
				c.print.Notef("%d of %d instances obeyed before this", len(answers), len(targets))
			}
			return err
		}
		answers = append(answers, answer)
		if c.print.JSON {
			err = c.print.Line(answer)
		} else {
			err = c.print.Printf("%s\n", cli.Printable(ch.tell(answer)))
		}
		if err != nil {
			return err
		}
	}
	if !c.print.JSON && len(targets) > 1 {
		c.print.Notef("%d instances, applied in %.1f s", len(targets), time.Since(began).Seconds())
	}
	return nil
}

// asking is what --dry-run answers with --json.
type asking struct {
	DryRun   bool           `json:"dry_run"`
	Instance string         `json:"instance"`
	Method   string         `json:"method"`
	Path     string         `json:"path"`
	Body     map[string]any `json:"body,omitempty"`
}

// wouldAsk is the answer of --dry-run.
func (c *ctl) wouldAsk(targets []target, method, path string, body map[string]any) error {
	for _, t := range targets {
		var err error
		if c.print.JSON {
			err = c.print.Line(asking{DryRun: true, Instance: t.addr, Method: method, Path: path, Body: body})
		} else {
			err = c.print.Printf("%s\n", strings.TrimSpace(fmt.Sprintf("would ask %s: %s %s %s", t.addr, method, path, compact(body))))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// containerPath escapes the name: a container may be called after a queue, slashes included.
func containerPath(name, verb string) string {
	return "/api/containers/" + url.PathEscape(name) + "/" + verb
}

func (c *ctl) pauseVerb() *cobra.Command {
	return c.simple("pause", "Stop receiving until resume; received messages are finished", tellState)
}

func (c *ctl) resumeVerb() *cobra.Command {
	return c.simple("resume", "End a pause", tellState)
}

func (c *ctl) reconnectVerb() *cobra.Command {
	return c.simple("reconnect", "Try to connect now, while the container recovers", func(map[string]any) string { return "trying to connect now" })
}

// simple is a verb without flags of its own, such as pause and resume; tell says what the answer
// means.
func (c *ctl) simple(verb, short string, tell func(answer map[string]any) string) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: verb + " CONTAINER", Short: short, Args: exactly("CONTAINER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.change(cmd.Context(), change{method: "POST", path: containerPath(args[0], verb), body: with(nil, "reason", reason),
				tell: func(a map[string]any) string { return args[0] + "     " + tell(a) }})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "recorded with the event")
	return cmd
}

// tellState says what a pause or a resume has changed, and what goes on.
func tellState(a map[string]any) string {
	before, now := a["before"], a["state"]
	if before == nil { // a service of an older version
		return fmt.Sprintf("now %v", now)
	}
	if before == now {
		return fmt.Sprintf("already %v, nothing changed", now)
	}
	text := fmt.Sprintf("%v → %v", before, now)
	held := int(number(a["in_flight"]))
	switch {
	case now != "paused":
		return text + fmt.Sprintf("; receiving again, %s held", messages(held))
	case held == 0:
		return text + "; receives nothing until resume, no message is held"
	}
	return text + fmt.Sprintf("; receives nothing until resume, %s in work will be finished", messages(held))
}

// drainVerb waits for the end of the drain, unlike the other changes, because its report says whether
// something was left behind.
func (c *ctl) drainVerb() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "drain CONTAINER", Short: "Finish the received messages and stop consuming", Args: exactly("CONTAINER"),
		Long: "drain waits until the container has stopped and prints its report. The container stays stopped until the service restarts.",
		RunE: func(cmd *cobra.Command, args []string) error {
			clean := true
			err := c.change(cmd.Context(), change{method: "POST", path: containerPath(args[0], "drain"), body: with(nil, "reason", reason),
				tell: func(a map[string]any) string {
					if a["clean"] == false {
						clean = false
					}
					return fmt.Sprintf("%s     %v", args[0], a["text"])
				}})
			if err == nil && !clean {
				return &cli.CodeError{Code: cli.ExitNo}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "recorded with the event")
	return cmd
}

// scaleVerb prints the bounds before and after, so that the person can undo the change.
func (c *ctl) scaleVerb() *cobra.Command {
	var workers, reason string
	cmd := &cobra.Command{
		Use: "scale CONTAINER --workers MIN:MAX", Short: "Change the bounds of the workers", Args: exactly("CONTAINER"),
		Example: "  longshore ctl scale orders --workers 4:50\n  longshore ctl scale orders --workers :20    # the minimum stays",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("workers") {
				return &cli.UsageError{Text: "scale needs --workers", Hint: "write for example --workers 4:50, :50 or 8"}
			}
			body, err := parseWorkers(workers)
			if err != nil {
				return err
			}
			return c.change(cmd.Context(), change{method: "PUT", path: containerPath(args[0], "workers"), body: with(body, "reason", reason),
				tell: func(a map[string]any) string {
					return fmt.Sprintf("%s     workers %s → %s", args[0], span(a["before"]), span(at(a, "container", "workers")))
				}})
		},
	}
	cmd.Flags().StringVar(&workers, "workers", "", "minimum and maximum, `min:max`; one number sets both")
	cmd.Flags().StringVar(&reason, "reason", "", "recorded with the event")
	return cmd
}

// parseWorkers reads "4:50", ":50" or "8". A bound that is left out is left out of the request as well:
// only the instance knows its current value.
func parseWorkers(s string) (map[string]any, error) {
	bad := &cli.UsageError{Text: fmt.Sprintf("--workers %q is not MIN:MAX", s), Hint: "write for example --workers 4:50, :50 or 8"}
	lo, hi, two := strings.Cut(s, ":")
	if !two {
		hi = lo
	}
	body := map[string]any{}
	for name, text := range map[string]string{"min": lo, "max": hi} {
		if text == "" {
			continue
		}
		var n int
		if _, err := fmt.Sscanf(text, "%d", &n); err != nil || fmt.Sprint(n) != text {
			return nil, bad
		}
		body[name] = n
	}
	lowest, hasMin := body["min"].(int)
	highest, hasMax := body["max"].(int)
	switch {
	case len(body) == 0:
		return nil, bad
	case lowest < 0, hasMax && highest < 1, hasMin && hasMax && lowest > highest:
		return nil, &cli.UsageError{Text: fmt.Sprintf("--workers %q is not possible", s), Hint: "the most is at least 1 and not less than the least; pause stops a container"}
	}
	return body, nil
}

// with adds what is not empty.
func with(body map[string]any, name, value string) map[string]any {
	if value == "" {
		return body
	}
	if body == nil {
		body = map[string]any{}
	}
	body[name] = value
	return body
}
