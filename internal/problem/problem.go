package problem

import (
	"fmt"
	"strings"

	"github.com/longshore-go/longshore"
)

// Kind says how a setting is wrong.
type Kind uint8

// The kinds.
const (
	Invalid     Kind = iota // the value cannot work, for the reason given
	OutOfRange              // the value is outside its bounds
	Missing                 // a value is needed and there is none
	Conflicting             // the value does not work with another setting
	UnknownName             // no setting has this name
	UnknownWord             // the value is none of the known words
)

// Place says what the field of a problem is.
type Place uint8

// The places.
const (
	Setting   Place = iota // a field of a Go struct
	Parameter              // a parameter of a URL
	Port                   // the port in a URL; Field is empty
)

// Names renames a setting, or a constant that is its value.
type Names func(goName string) string

// Problem is one mistake. As an error it reads "Workers.Min is 30, must be at most
// Workers.Max, which is 10".
type Problem struct {
	Kind  Kind
	Place Place
	// Field is the path of the setting by Go's names, or the name of a URL parameter. It is
	// empty if the problem concerns the whole.
	Field string
	// MaySupply means that the machine on which the program runs may supply the missing
	// value, so that a check elsewhere can only warn.
	MaySupply bool

	cause error // of what is wrong, may be nil

	what text // the mistake: "is 30"
	must text // what the value must be: "at most …"
	hint text // what to do
}

// text is a template with its values.
type text struct {
	format string
	args   []any
}

// in renders the template with other names; nil keeps those of Go.
func (t text) in(names Names) string {
	var b strings.Builder
	rest := t.format
	for {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		if !found {
			break
		}
		if literal, ok := strings.CutPrefix(after, "{"); ok {
			b.WriteByte('{')
			rest = literal
			continue
		}
		name, behind, closed := strings.Cut(after, "}")
		if !closed {
			b.WriteString("{" + after)
			break
		}
		aside, goOnly := strings.CutPrefix(name, "?")
		switch {
		case names == nil:
			b.WriteString(aside)
		case !goOnly:
			b.WriteString(strings.ReplaceAll(names(name), "%", "%%"))
		}
		rest = behind
	}
	if len(t.args) == 0 { // it is not a format, but for what was escaped
		return strings.ReplaceAll(b.String(), "%%", "%")
	}
	return fmt.Sprintf(b.String(), t.args...)
}

// Literal is a value inside a template, such as the name of a queue.
func Literal(s string) string { return strings.ReplaceAll(s, "{", "{{") }

// Range is a value outside its bounds. must completes "must be …".
func Range(field string, value any, must string, args ...any) *Problem {
	return &Problem{Kind: OutOfRange, Field: field, what: text{"is %v", []any{value}}, must: text{must, args}}
}

// Required is a setting without which nothing works.
func Required(field, hint string) *Problem {
	return &Problem{Kind: Missing, Field: field, what: text{format: "is not set"}, hint: text{format: hint}}
}

// Conflict is a setting that does not work alongside another one. value may be nil; other, why
// and hint are templates without arguments.
func Conflict(field string, value any, other, why, hint string) *Problem {
	p := &Problem{Kind: Conflicting, Field: field, hint: text{format: hint}}
	p.what.format = "does not go with " + strings.ReplaceAll(other+": "+why, "%", "%%")
	if value != nil {
		p.what.format, p.what.args = "%v "+p.what.format, []any{value}
	}
	return p
}

// Bad is any other mistake. what follows the field's name.
func Bad(field, hint, what string, args ...any) *Problem {
	return &Problem{Field: field, what: text{what, args}, hint: text{format: hint}}
}

// Because adds the error that says why.
func (p *Problem) Because(err error) *Problem {
	p.cause = err
	return p
}

// Unwrap returns that error.
func (p *Problem) Unwrap() error { return p.cause }

// Under is the problem with its field below another one.
func (p *Problem) Under(field string) *Problem {
	moved := *p
	moved.Field = strings.TrimSuffix(field+"."+p.Field, ".")
	return &moved
}

// OfKind sets the kind.
func (p *Problem) OfKind(k Kind) *Problem {
	p.Kind = k
	return p
}

// In sets the place.
func (p *Problem) In(where Place) *Problem {
	p.Place = where
	return p
}

// Text is the mistake, without what the value must be.
func (p *Problem) Text(names Names) string {
	field := p.Field
	switch {
	case p.Place == Parameter:
		field = "parameter " + shown(field)
	case names != nil && field != "":
		field = names(field)
	}
	said := strings.TrimSpace(field + " " + p.what.in(names))
	if p.cause != nil {
		said += ": " + strings.TrimPrefix(p.cause.Error(), "longshore: ")
	}
	return said
}

// shown is the name of a URL parameter, unless it may be the end of a password that has a
// question mark in it.
func shown(parameter string) string {
	if !Showable(parameter) {
		return "(not shown: percent-encode a ? that belongs to a user, a password or a name)"
	}
	return fmt.Sprintf("%.40q", parameter)
}

// Showable reports whether the name of a URL parameter cannot be the end of a password.
func Showable(parameter string) bool {
	for _, r := range parameter {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.' {
			return false
		}
	}
	return true
}

// Must is what the value must be, "" if the text says that already.
func (p *Problem) Must(names Names) string { return p.must.in(names) }

// Hint is what to do.
func (p *Problem) Hint(names Names) string { return p.hint.in(names) }

// Error is the problem by Go's names, without the hint.
func (p *Problem) Error() string {
	if must := p.Must(nil); must != "" {
		return p.Text(nil) + ", must be " + must
	}
	return p.Text(nil)
}

// Same reports whether two problems are the same mistake.
func (p *Problem) Same(other *Problem) bool {
	return p.Kind == other.Kind && p.Place == other.Place && p.Field == other.Field && p.Error() == other.Error()
}

// Of makes the module's error of a problem: what was done to which source.
func (p *Problem) Of(op, source string) *longshore.Error {
	return &longshore.Error{Code: longshore.CodeConfig, Op: op, Source: source, Err: p, Hint: p.Hint(nil)}
}
