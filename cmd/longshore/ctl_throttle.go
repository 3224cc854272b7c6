package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/middleware/throttle"
)

// throttleFlags are the flags of throttle. A flag that was not given is left out of the request, since 0
// is a value: it holds everything.
type throttleFlags struct {
	permits, burst, add int
	rate                float64
	clear, fleet        bool
	share, reason       string
	hold                time.Duration
}

// throttleVerb sends a change of the fleet to one instance only: that one publishes it on the
// control topic, and the others obey the topic.
func (c *ctl) throttleVerb() *cobra.Command {
	var f throttleFlags
	cmd := &cobra.Command{
		Use: "throttle CONTAINER", Short: "Limit how many messages are handled at once or started per second", Args: exactly("CONTAINER"),
		Long: "throttle changes the limits at once; running handlers continue, and 0 holds everything. With --for the previous value returns by itself.\n" +
			"With --fleet all instances obey, through their control topic.",
		Example: "  longshore ctl throttle orders --permits 5\n" +
			"  longshore ctl throttle orders --permits 0 --for 10m --reason \"ledger down\"\n" +
			"  longshore ctl throttle orders --fleet --share total --permits 30\n" +
			"  longshore ctl throttle orders --clear",
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := f.body(cmd)
			if err != nil {
				return err
			}
			return c.change(cmd.Context(), change{method: "PUT", path: containerPath(args[0], "throttle"), body: body, once: f.fleet,
				tell: func(a map[string]any) string { return tellThrottle(args[0], a) }})
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&f.permits, "permits", 0, "how many messages may be handled at once; 0 holds everything")
	fs.IntVar(&f.add, "add", 0, "change the permits by this many; negative: fewer; with --fleet relative to the fleet's value")
	fs.Float64Var(&f.rate, "rate", 0, "messages that may start per second; 0 holds everything")
	fs.IntVar(&f.burst, "burst", 0, "how many starts saved up while idle may happen at once")
	fs.BoolVar(&f.clear, "clear", false, "return to the configured limits")
	fs.DurationVar(&f.hold, "for", 0, "return to the previous value after this time")
	fs.BoolVar(&f.fleet, "fleet", false, "for all instances, through the control topic")
	fs.StringVar(&f.share, "share", "", "with --fleet: each (every instance gets the numbers) or total (all instances share them)")
	fs.StringVar(&f.reason, "reason", "", "recorded with the event")
	return cmd
}

// body refuses flags that contradict each other here, with the flags' names; the API would name fields
// that a person has not typed.
func (f *throttleFlags) body(cmd *cobra.Command) (map[string]any, error) {
	given := cmd.Flags().Changed
	body := map[string]any{}
	for name, v := range map[string]any{"permits": f.permits, "rate": f.rate, "burst": f.burst, "add": f.add} {
		if given(name) {
			body[name] = v
		}
	}
	says := len(body) > 0
	if f.clear == says {
		return nil, &cli.UsageError{Text: "throttle needs a limit, or --clear, not both", Hint: "write for example --permits 5, --rate 200 or --clear"}
	}
	if f.clear {
		body["clear"] = true
	}
	if given("permits") && given("add") {
		return nil, &cli.UsageError{Text: "--permits and --add exclude each other", Hint: "--permits sets the number, --add changes the current one"}
	}
	if f.permits < 0 || f.rate < 0 || f.burst < 0 {
		return nil, &cli.UsageError{Text: "--permits, --rate and --burst must be 0 or more", Hint: "0 holds everything; --add -2 takes two permits away; --clear returns to the configured limit"}
	}
	if given("for") {
		if f.hold <= 0 {
			return nil, &cli.UsageError{Text: "--for must be more than 0", Hint: "write for example --for 10m"}
		}
		body["for"] = f.hold.String()
	}
	if f.fleet {
		body["scope"] = "fleet"
	}
	if f.share != "" && f.share != "each" && f.share != "total" {
		return nil, &cli.UsageError{Text: "--share " + f.share + " is not known", Hint: "use each or total"}
	}
	if f.share != "" && !f.fleet {
		return nil, &cli.UsageError{Text: "--share is for a fleet", Hint: "add --fleet, or leave it out"}
	}
	body = with(body, "share", f.share)
	return with(body, "reason", f.reason), nil
}

// tellThrottle is before and after in one line.
func tellThrottle(name string, a map[string]any) string {
	before, after := a["before"], at(a, "container", "throttle")
	parts := []string{fmt.Sprintf("permits %s → %s", limitText(at(before, "permits")), limitText(at(after, "permits")))}
	if number(at(before, "rate")) >= 0 || number(at(after, "rate")) >= 0 {
		parts = append(parts, fmt.Sprintf("rate %s → %s", limitText(at(before, "rate")), limitText(at(after, "rate"))))
	}
	if from, to := number(at(before, "burst")), number(at(after, "burst")); from != to {
		parts = append(parts, fmt.Sprintf("burst %v → %v", from, to))
	}
	for _, layer := range []string{"operator", "fleet"} {
		if until, ok := at(after, layer, "until").(string); ok {
			if t, err := time.Parse(time.RFC3339, until); err == nil {
				parts = append(parts, "until "+t.Local().Format("15:04:05")+" (then "+thenText(at(after, layer), at(after, "configured"))+")")
				break
			}
		}
	}
	if issued := a["issued"]; issued != nil {
		if at(issued, "after") != nil {
			parts = append(parts, "fleet "+inForceText(at(issued, "before"))+" → "+inForceText(at(issued, "after")))
		}
		obeyed, _ := at(issued, "obeyed").([]any)
		parts = append(parts, fmt.Sprintf("%d instances, applied in %.2f s", len(obeyed), number(at(issued, "took"))/1e9))
		if missing, _ := at(issued, "missing").([]any); len(missing) > 0 {
			parts = append(parts, fmt.Sprintf("not yet: %v", missing))
		}
	}
	return name + "     " + strings.Join(parts, "     ")
}

// inForceText is a fleet's setting of the permits.
func inForceText(v any) string {
	text := limitText(at(v, "permits"))
	if at(v, "share") == string(throttle.Total) {
		text = "total " + text
	} else {
		text += " each"
	}
	if at(v, "configured") == true {
		text += " (configured)"
	}
	return text
}

// thenText is the configured value of the limits that a layer sets.
func thenText(layer, configured any) string {
	switch permits, rate := at(layer, "permits") != nil, at(layer, "rate") != nil; {
	case permits && rate:
		return limitText(at(configured, "permits")) + ", rate " + limitText(at(configured, "rate"))
	case rate:
		return "rate " + limitText(at(configured, "rate"))
	case permits:
		return limitText(at(configured, "permits"))
	}
	return "the configured limit"
}

// limitText is a limit for people.
func limitText(v any) string {
	n, ok := v.(float64)
	if !ok || n < 0 {
		return "–"
	}
	if n >= math.MaxInt { // a float has no room for its last digits
		return strconv.Itoa(math.MaxInt)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}
