package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/bridge/survey"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/transport"
)

// defaultSample is how many messages check looks at.
const defaultSample = 1000

func (b *bridgeCommand) check() *cobra.Command {
	sample, force := defaultSample, false
	cmd := b.verb("check", "Say what does not fit before anything is moved",
		"check reads both ends, looks at messages and changes nothing. It says which messages would cause\n"+
			"trouble, what changes between the two brokers, and which privileges the bridge needs.\n"+
			"Exit code 1: there are errors (E) that neither the file nor --accept accepts.",
		func(ctx context.Context, r *config.Route) error {
			if err := b.knownFindings(); err != nil {
				return err
			}
			if sample < 1 {
				return &cli.UsageError{Text: "--sample must be at least 1", Hint: "it is the number of messages to look at"}
			}
			if force {
				look := *r
				look.From, r = r.Look, &look
			}
			return b.runCheck(ctx, r, sample)
		})
	cmd.Flags().StringArrayVar(&b.accept, "accept", nil, "`CODE` of a finding that is accepted; repeat for more")
	cmd.Flags().BoolVar(&force, "force", false, "look also where that counts as a delivery: quorum queues, SQS with a redrive policy")
	cmd.Flags().IntVar(&sample, "sample", defaultSample, "look at this many messages")
	return cmd
}

// knownFindings refuses codes of --accept that no finding has.
func (b *bridgeCommand) knownFindings() error {
	for _, code := range b.accept {
		if !slices.Contains(config.Findings(), code) {
			return &cli.UsageError{Text: "unknown finding " + code, Hint: "the findings are " + strings.Join(config.Findings(), ", ")}
		}
	}
	return nil
}

// accepted are the findings that the file and the command line accept.
func (b *bridgeCommand) accepted(r *config.Route) []string { return slices.Concat(r.Accept, b.accept) }

func (b *bridgeCommand) survey(ctx context.Context, r *config.Route, sample int) (*survey.Report, error) {
	ctx, cancel := b.bounded(ctx)
	defer cancel()
	return survey.Of(ctx, survey.Input{From: r.From, To: r.To, Identity: r.Identity, Sample: sample, HeadersExchange: r.HeadersExchange})
}

// checkResult is what check prints in JSON.
type checkResult struct {
	Route      string             `json:"route"`
	From       string             `json:"from"`
	To         string             `json:"to"`
	Ready      int64              `json:"ready"`
	Unsettled  int64              `json:"unsettled"`
	Delayed    int64              `json:"delayed"`
	Consumers  int64              `json:"consumers"`
	Uncounted  string             `json:"uncounted,omitempty"`
	Exists     bool               `json:"target_exists"`
	Sampled    int                `json:"sampled"`
	NotSampled string             `json:"not_sampled,omitempty"`
	Keys       int                `json:"keys"`
	TopShare   float64            `json:"largest_key_share"`
	Largest    int                `json:"largest_body"`
	Limit      int                `json:"target_limit"`
	Findings   []survey.Finding   `json:"findings"`
	Open       []string           `json:"not_accepted"`
	Changes    []survey.Change    `json:"changes"`
	Privileges []survey.Privilege `json:"privileges"`
}

func (b *bridgeCommand) runCheck(ctx context.Context, r *config.Route, sample int) error {
	s, err := b.survey(ctx, r, sample)
	if err != nil {
		return err
	}
	open := s.Open(b.accepted(r))
	if b.print.JSON {
		w := s.Waiting
		err = b.print.Document(checkResult{Route: r.Name, From: nameOf(r.From), To: nameOf(r.To), Ready: w.Ready, Unsettled: w.Unsettled, Delayed: w.Delayed, Consumers: w.Consumers, Uncounted: w.Uncounted,
			Exists: s.Exists, Sampled: s.Sampled, NotSampled: s.NotSampled, Keys: s.Keys, TopShare: s.TopShare, Largest: s.Largest, Limit: s.Limit,
			Findings: s.Findings, Open: open, Changes: s.Changes, Privileges: s.Privileges})
	} else {
		err = b.print.Printf("%s", b.surveyText(r, s, open))
	}
	if err == nil && len(open) > 0 {
		return &cli.CodeError{Code: cli.ExitNo}
	}
	return err
}

func (b *bridgeCommand) surveyText(r *config.Route, s *survey.Report, open []string) string {
	var t strings.Builder
	fmt.Fprintf(&t, "%s  %s (%s)\n", b.print.PaintOut(cli.Bold, r.Name), nameOf(r.From), countsText(&s.Waiting))
	target := "missing: cutover creates it if declare says how"
	if s.Exists {
		target = countsText(&s.Target)
	}
	fmt.Fprintf(&t, "  → %s (%s)\n", nameOf(r.To), target)
	for _, f := range s.Findings {
		letter, color := "W", cli.Yellow
		switch {
		case f.Error && slices.Contains(open, f.Code):
			letter, color = "E", cli.Red
		case f.Error:
			letter = "A"
		}
		fmt.Fprintf(&t, "  %s %s\n", b.print.PaintOut(color, fmt.Sprintf("%s %-16s", letter, f.Code)), cli.Printable(f.Text))
		if f.Hint != "" {
			fmt.Fprintf(&t, "                     %s\n", b.print.PaintOut(cli.Cyan, f.Hint))
		}
	}
	switch {
	case s.NotSampled != "":
		fmt.Fprintf(&t, "  W %-16s no message was looked at, because that counts as a delivery here; --force looks anyway\n", "not sampled")
	case s.Sampled == 0:
		fmt.Fprintf(&t, "  I no messages to look at\n")
	default:
		fmt.Fprintf(&t, "  I %d messages looked at: %d keys, the largest %.1f %%; largest body %s of %s\n", s.Sampled, s.Keys, s.TopShare*100, bytesText(s.Largest), bytesText(s.Limit))
	}
	if s.Waiting.Uncounted != "" {
		fmt.Fprintf(&t, "  I not counted: %s\n", s.Waiting.Uncounted)
	}
	for _, c := range s.Changes {
		fmt.Fprintf(&t, "  %-20s %s → %s\n", c.What, c.Old, c.New)
	}
	for _, p := range s.Privileges {
		fmt.Fprintf(&t, "  %-20s %s\n", "privileges, "+p.Side, p.Text)
	}
	if len(open) > 0 {
		fmt.Fprintf(&t, "not accepted: %s\n", strings.Join(open, ", "))
	} else {
		fmt.Fprintf(&t, "next: %s\n", b.again("cutover", r))
	}
	return t.String()
}

// countsText is "8412 ready, 6 consumers".
func countsText(r *transport.Remaining) string {
	parts := []string{fmt.Sprintf("%d ready", r.Ready)}
	if r.Unsettled > 0 {
		parts = append(parts, fmt.Sprintf("%d unsettled", r.Unsettled))
	}
	if r.Delayed > 0 {
		parts = append(parts, fmt.Sprintf("%d delayed", r.Delayed))
	}
	switch {
	case r.Consumers == 1:
		parts = append(parts, "1 consumer")
	case r.Consumers >= 0:
		parts = append(parts, fmt.Sprintf("%d consumers", r.Consumers))
	}
	return strings.Join(parts, ", ")
}

func bytesText(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
