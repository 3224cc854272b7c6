package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
)

// This file places the problems that constructors report: a problem names its setting by
// Go's path, and the file has that setting at a line.

// blame reports what a constructor found, each problem at its setting. base is the path in
// the file that Go's paths are below, fallback where to point for all else.
func (l *loader) blame(base, fallback string, err error) {
	for _, e := range problem.Split(err) {
		l.blameOne(base, fallback, "", e)
	}
}

// blameOne reports one problem; where names the broker if it is not the source's own.
func (l *loader) blameOne(base, fallback, where string, err error) {
	found, p := problemIn(err)
	at, path := l.locate(base, fallback, found)
	if path == "" {
		return // reported already
	}
	p.Path, p.Text = path, p.Text+where
	if none := noneOf(path); none != "" && found.Kind == problem.OutOfRange && found.Must(nil) != "" {
		p.Hint += ", or " + none
	}
	p.Warning = l.check && found.MaySupply // the service may run where the value is known
	l.report(at, p)
	if p.Warning {
		delete(l.broken, path)
	}
}

// problemIn is the problem inside an error, in the words of the file.
func problemIn(err error) (*problem.Problem, Problem) {
	p := Problem{Code: longshore.CodeConfig, cause: err}
	e, ok := errors.AsType[*longshore.Error](err)
	if ok {
		p.Code, p.Hint = e.Code, e.Hint
	}
	found, typed := errors.AsType[*problem.Problem](err)
	switch {
	case typed && found.Place == problem.Port:
		p.Text, p.Hint = "the port is not a number from 1 to 65535", "leave it out for the default port; percent-encode / ? # @ : % in a password, or write password: env:NAME"
		return found, p
	case typed:
		p.Text, p.Hint = found.Text(keyOf), found.Hint(keyOf)
		if must := found.Must(keyOf); must != "" {
			p.Hint = strings.TrimSuffix("must be "+must+"; "+p.Hint, "; ")
		}
		p.Code = codeOf(found.Kind, p.Code)
		return found, p
	case ok:
		p.Text = e.Text()
	default:
		p.Text = strings.TrimPrefix(err.Error(), "longshore: ")
	}
	return problem.Bad("", "", ""), p
}

// codeOf is the code of a kind of problem, where the error has no code of its own.
func codeOf(k problem.Kind, own longshore.Code) longshore.Code {
	switch {
	case k == problem.UnknownName:
		return CodeUnknownKey
	case k == problem.UnknownWord:
		return CodeUnknownValue
	case own != longshore.CodeConfig || k == problem.Invalid:
		return own
	case k == problem.Missing:
		return CodeMissing
	}
	return CodeOutOfRange // also for what does not go with something else
}

// locate finds the place of a problem, and the path it belongs to: "" if the setting has a
// problem already, of which this one follows.
func (rp *reporter) locate(base, fallback string, found *problem.Problem) (at spot, path string) {
	at = rp.place(fallback)
	switch {
	case found.Place == problem.Parameter:
		if !problem.Showable(found.Field) {
			return rp.inURL(fallback, found.Field, at), fallback
		}
		return rp.inURL(fallback, found.Field, at), join(fallback, found.Field) // a URL may have several mistakes
	case found.Place == problem.Port:
		return rp.portInURL(fallback, at), fallback
	case found.Field == "":
		return at, fallback
	}
	key := keyOf(found.Field)
	full := rp.fieldAt(base, key)
	if rp.told(full) {
		return spot{}, ""
	}
	if e, ok := rp.at[full]; ok {
		return rp.spotOfEntry(e), full
	}
	if _, source := sourceOf(base); source != "" && rp.has(source) {
		if at := rp.inURL(source, key, spot{}); at.length > 0 {
			return at, source
		}
	}
	if fieldOf(full) == nil {
		return at, fallback
	}
	return rp.place(full), full
}

// fieldAt is the path of a setting: below base, or below the source of the container that
// base is.
func (doc *document) fieldAt(base, key string) string {
	below := strings.ReplaceAll(key, ".", sep)
	base, source := sourceOf(base)
	if source != "" && !doc.has(join(base, below)) && doc.has(join(source, below)) {
		return join(source, below)
	}
	return join(base, below)
}

// sourceOf is the container that base is or is a source of, and its source; "" elsewhere.
func sourceOf(base string) (container, source string) {
	switch in := parent(base); {
	case in == "containers":
		return base, join(base, "source")
	case last(in) == "sources" && parent(parent(in)) == "containers":
		return parent(in), base
	}
	return base, ""
}

// keyOf is the key of a setting, or the word for a constant, by Go's name.
func keyOf(goName string) string {
	for _, r := range renamed() {
		if rest, ok := strings.CutPrefix(goName, r.goName); ok && (rest == "" || rest[0] == '.') {
			return r.key + snake(rest)
		}
	}
	return snake(goName)
}

// renamed are the settings whose key is not their Go name in snake_case.
func renamed() []struct{ goName, key string } {
	return []struct{ goName, key string }{
		{"Addr", "listen"}, {"TwoSteps", "two_step_stop"}, {"DialTimeout", "connect_timeout"}, {"PublisherConfig.MaxBatchBytes", "publish.batch_bytes"}, {"PublisherConfig", "publish"}, {"Outlet", "publish"},
		{"SettleAuto", "auto"}, {"SettleManual", "manual"}, {"StuckWait", "wait"}, {"StuckReplace", "replace"},
		{"DeadLetterNative", "native"}, {"DeadLetterKeep", "keep"}, {"DeadLetterDiscard", "discard"},
	}
}

// has reports whether the file itself says something at a path, so that a mistake can be shown there
// rather than at the section.
func (doc *document) has(path string) bool {
	_, ok := doc.at[path]
	return ok
}

// told reports whether a path, or what is around it below its container, has a problem
// already: what follows from a mistake is not another one.
func (rp *reporter) told(path string) bool {
	for n := strings.Count(path, sep); n >= 2; n-- {
		if rp.broken[path] {
			return true
		}
		path = parent(path)
	}
	return false
}

// sameMistake compares what two constructors found.
func sameMistake(a, b error) bool {
	p, typed := errors.AsType[*problem.Problem](a)
	q, other := errors.AsType[*problem.Problem](b)
	if typed && other {
		return p.Same(q)
	}
	return typed == other && a.Error() == b.Error()
}

// newMistakes are those of an error that are not known.
func newMistakes(err error, known []error) []error {
	return slices.DeleteFunc(problem.Split(err), func(e error) bool {
		return slices.ContainsFunc(known, func(k error) bool { return sameMistake(e, k) })
	})
}

// wrongParameters are the parameters of a URL that an error is about.
func wrongParameters(err error) map[string]bool {
	wrong := map[string]bool{}
	for _, e := range problem.Split(err) {
		if p, ok := errors.AsType[*problem.Problem](e); ok && p.Place == problem.Parameter {
			wrong[p.Field] = true
		}
	}
	return wrong
}
