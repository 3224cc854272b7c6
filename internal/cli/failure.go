package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-go/longshore"
)

// Problem is one error in the form in which the command and its JSON show it.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Help    string `json:"help,omitempty"`
	// Fields are facts of the message: user, vhost, topic.
	Fields map[string]string `json:"fields,omitempty"`
	// Times is how often it came, if that is more than once.
	Times int `json:"times,omitempty"`
}

// Problems takes an error apart: joined ones, and every *longshore.Error among
// them with its code and its hint.
func Problems(err error) []Problem {
	switch e := err.(type) { //nolint:errorlint // the text around a wrapped error belongs to the message: see below
	case nil:
		return nil
	case *CodeError:
		return Problems(e.Err)
	case *UsageError:
		return []Problem{{Code: string(CodeUsage), Message: e.Text, Help: e.Hint}}
	case *longshore.Error:
		return []Problem{{Code: string(e.Code), Message: e.Text(), Help: help(e.Hint), Fields: fields(e)}}
	case interface{ Unwrap() []error }:
		var out []Problem
		for _, part := range e.Unwrap() {
			out = append(out, Problems(part)...)
		}
		return out
	}
	text := strings.TrimPrefix(err.Error(), "longshore: ")
	if errors.Is(err, context.DeadlineExceeded) {
		return []Problem{{Code: string(longshore.CodeTimeout), Message: "no answer in time", Help: "raise --timeout, or look whether the broker is well"}}
	}
	var inner *longshore.Error
	if errors.As(err, &inner) {
		return []Problem{{Code: string(inner.Code), Message: strings.TrimSuffix(text, "; "+inner.Hint), Help: help(inner.Hint), Fields: fields(inner)}}
	}
	return []Problem{{Code: string(plainCode(err)), Message: text}}
}

func fields(err error) map[string]string {
	var all map[string]string
	for _, f := range longshore.FieldsOf(err) {
		if all == nil {
			all = map[string]string{}
		}
		all[f.Name] = f.Value
	}
	return all
}

// help leaves out of a hint what only a program can do.
func help(hint string) string { return strings.TrimSuffix(hint, ", or set Declare") }

// plainCode finds a code in an error that is not a *longshore.Error.
func plainCode(err error) longshore.Code {
	var code longshore.Code
	if errors.As(err, &code) {
		return code
	}
	if errors.Is(err, longshore.CodeDrain) {
		return longshore.CodeDrain
	}
	return longshore.CodeInternal
}

// counted reports what came several times once: a thousand messages may fail for one reason.
func counted(all []Problem) (once []Problem) {
	type text struct{ code, message, help string }
	at := map[text]int{}
	for _, x := range all {
		key := text{x.Code, x.Message, x.Help}
		i, seen := at[key]
		switch {
		case !seen:
			at[key] = len(once)
			once = append(once, x)
		case once[i].Times == 0:
			once[i].Times = 2
		default:
			once[i].Times++
		}
	}
	return once
}

func times(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", n)
}

// Failure writes an error: "error[code]: what" and, if there is something to do
// about it, "help: what" below. A CodeError without a cause, an interrupt and nil
// write nothing.
func (p *Printer) Failure(err error) {
	var stopped *Interrupted
	if errors.As(err, &stopped) {
		return
	}
	for _, x := range counted(Problems(err)) {
		if p.JSON {
			_ = encodeLine(p.Streams.Err, x) // a broken stderr cannot be reported
			continue
		}
		label := p.PaintErr(Red, "error["+x.Code+"]:")
		fmt.Fprintf(p.Streams.Err, "%s %s\n", label, Printable(x.Message)+times(x.Times))
		if x.Help != "" {
			fmt.Fprintf(p.Streams.Err, "%s %s\n", p.PaintErr(Cyan, "help:"), Printable(x.Help))
		}
	}
}
