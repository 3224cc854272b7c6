package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
)

// checked is the answer of config check as JSON.
type checked struct {
	config.Report
	Errors             int     `json:"errors"`
	Warnings           int     `json:"warnings"`
	DrainSeconds       float64 `json:"drain_seconds,omitempty"`
	StopTimeoutSeconds float64 `json:"stop_timeout_seconds,omitempty"`
	GraceSeconds       float64 `json:"grace_seconds,omitempty"`
}

// showReport prints what was found; mistakes are the answer, so they go to stdout.
func showReport(a *app, r *config.Report) error {
	errs, warnings := r.Errors(), r.Warnings()
	if a.print.JSON {
		if r.Problems == nil {
			r.Problems = []config.Problem{}
		}
		doc := checked{Report: *r, Errors: errs, Warnings: warnings, DrainSeconds: r.Drain.Seconds(), StopTimeoutSeconds: r.StopTimeout.Seconds(), GraceSeconds: r.Grace.Seconds()}
		if err := a.print.Document(doc); err != nil {
			return err
		}
	} else if err := a.print.Printf("%s", reportText(a, r, errs, warnings)); err != nil {
		return err
	}
	if errs > 0 {
		return &cli.CodeError{Code: cli.ExitNo}
	}
	return nil
}

// reportText is the report for people: each problem with its line, then what a check can add that no
// single problem says, the grace that the process needs from its supervisor.
func reportText(a *app, r *config.Report, errs, warnings int) string {
	var b strings.Builder
	for i := range r.Problems {
		writeProblem(a, &b, &r.Problems[i])
	}
	counts := "no mistakes"
	if errs > 0 {
		counts = counted(errs, "error")
	}
	if warnings > 0 {
		counts += ", " + counted(warnings, "warning")
	}
	fmt.Fprintf(&b, "%s: %s; no broker was contacted\n", r.File, counts)
	if errs == 0 && len(r.Routes) > 0 {
		fmt.Fprintf(&b, "%s: %s\n", counted(len(r.Routes), "route"), strings.Join(r.Routes, ", "))
	}
	if errs == 0 && len(r.Containers) > 0 {
		fmt.Fprintf(&b, "%s: %s\n", counted(len(r.Containers), "container"), strings.Join(r.Containers, ", "))
		fmt.Fprintf(&b, "drain: up to %s; stop_timeout %s; give the process a grace of at least %s (terminationGracePeriodSeconds: %d)\n",
			r.Drain, r.StopTimeout, r.Grace, int((r.Grace+time.Second-1)/time.Second))
	}
	return b.String()
}

// problem is in the form of compilers, which editors understand: the place, what is
// wrong, and the line with a mark.
func writeProblem(a *app, b *strings.Builder, p *config.Problem) {
	label, color := "error", cli.Red
	if p.Warning {
		label, color = "warning", cli.Yellow
	}
	fmt.Fprintf(b, "%s: %s %s\n", cli.Printable(p.Where), a.print.PaintOut(color, label+"["+string(p.Code)+"]:"), cli.Printable(p.Text))
	hint := a.print.PaintOut(cli.Cyan, cli.Printable(p.Hint))
	if p.Excerpt == "" {
		if p.Hint != "" {
			fmt.Fprintf(b, "     = %s\n", hint)
		}
		return
	}
	text, at, length := p.Excerpt, p.Mark[0], p.Mark[1]
	if cut := []rune(text); len(cut) > 160 { // a line of minified YAML
		from := max(0, at-40)
		text = string(cut[from:min(len(cut), from+160)])
		at -= from
		length = min(length, 160-at)
	}
	fmt.Fprintf(b, "%4d | %s\n", p.Line, cli.Printable(text))
	mark := a.print.PaintOut(color, strings.Repeat("^", max(length, 1)))
	b.WriteString(strings.TrimRight("     | "+strings.Repeat(" ", at)+mark+" "+hint, " ") + "\n")
}

func counted(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
