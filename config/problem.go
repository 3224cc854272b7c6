package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-go/longshore"
)

// Problem is one thing that is wrong with a configuration, and where.
type Problem struct {
	Code    longshore.Code `json:"code"`
	Warning bool           `json:"warning,omitempty"` // it works, and is a mistake anyway
	// Where is "longshore.yaml:7:24" or "env LONGSHORE_…".
	Where  string `json:"where"`
	Line   int    `json:"line,omitempty"`   // from 1; 0: not in the file
	Column int    `json:"column,omitempty"` // from 1, in characters
	Path   string `json:"path,omitempty"`   // "containers.orders.workers.min"
	Text   string `json:"message"`
	Hint   string `json:"help,omitempty"`
	// Excerpt is the line with everything secret in it masked, Mark the place in it
	// that is meant: a number of blanks and of carets.
	Excerpt string `json:"excerpt,omitempty"`
	Mark    [2]int `json:"-"`

	cause error
}

// Error is the problem in one line, without the excerpt.
func (p *Problem) Error() string {
	text := "longshore: " + p.Where + ": " + p.Text
	if p.Hint != "" {
		text += "; " + p.Hint
	}
	return text
}

// Unwrap gives the problem as the module's error type.
func (p *Problem) Unwrap() error {
	return &longshore.Error{Code: p.Code, Op: p.Where, Source: p.Path, Hint: p.Hint, Err: fmt.Errorf("%s%w", p.Text, hidden{p.cause})}
}

// hidden keeps a cause for errors.Is and errors.As without printing it twice.
type hidden struct{ err error }

func (hidden) Error() string { return "" }

// Unwrap returns the cause.
func (h hidden) Unwrap() error { return h.err }

// spot is a place in the file, or a variable.
type spot struct {
	line, column, length int
	env                  string
}

// where is FILE:LINE:COLUMN, which editors jump to, or the variable that a value comes from.
func (s spot) where(file string) string {
	switch {
	case s.env != "":
		return "env " + s.env
	case s.line == 0:
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, s.line, s.column)
}

// report notes a problem.
func (rp *reporter) report(at spot, p Problem) {
	p.Where, p.Line, p.Column = at.where(rp.name), at.line, at.column
	p.Text, p.Hint = printable(p.Text), printable(p.Hint)
	for i := range rp.problems {
		if q := &rp.problems[i]; q.Where == p.Where && q.Text == p.Text {
			return // found in defaults, once for each container
		}
	}
	rp.broken[p.Path] = true
	if len(rp.problems) >= maxProblems {
		rp.more++
		return
	}
	p.Path = printable(dotted(p.Path))
	rp.problems = append(rp.problems, p)
	rp.spots = append(rp.spots, at)
}

// finish sorts the problems by their place and gives them their excerpts: only now
// everything that has to be masked is known.
func (rp *reporter) finish() []Problem {
	if rp.more > 0 {
		p := Problem{Code: CodeSyntax, Text: fmt.Sprintf("%d more mistakes are not listed", rp.more), Hint: "correct the first ones"}
		p.Where = rp.name
		rp.problems, rp.spots = append(rp.problems, p), append(rp.spots, spot{})
	}
	for i := range rp.problems {
		if at := rp.spots[i]; at.line > 0 && at.length > 0 {
			rp.problems[i].Excerpt, rp.problems[i].Mark = rp.excerpt(at)
		}
	}
	slices.SortStableFunc(rp.problems, func(a, b Problem) int {
		if (a.Line == 0) != (b.Line == 0) { // variables behind the file
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Where, b.Where))
	})
	return rp.problems
}

// fatal are those that are not warnings, as errors.
func fatal(problems []Problem) []error {
	var errs []error
	for i := range problems {
		if !problems[i].Warning {
			errs = append(errs, &problems[i])
		}
	}
	return errs
}
