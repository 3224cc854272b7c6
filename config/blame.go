package config

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/longshore-go/longshore"
)

// blame reports what a constructor said, field by field at the field's place. base is
// the path that Go's names are below, fallback where to point for the rest.
func (l *loader) blame(base, fallback string, err error) {
	for _, e := range flatten(err) {
		l.blameOne(base, fallback, e)
	}
}

func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range many.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	return []error{err}
}

func (l *loader) blameOne(base, fallback string, err error) {
	p := Problem{Code: longshore.CodeConfig, Text: err.Error(), cause: err}
	if e, ok := err.(*longshore.Error); ok { //nolint:errorlint // the error itself
		p.Code, p.Hint, p.Text = e.Code, e.Hint, e.Text()
		if e.Err != nil && (strings.HasPrefix(e.Op, "container ") || strings.HasPrefix(e.Op, "make a breaker")) {
			p.Text = strings.TrimPrefix(e.Err.Error(), "longshore: ")
		}
	}
	raw := p.Text
	p.Text, p.Hint = reworded(p.Text, p.Hint)
	at, path, told := l.meant(base, fallback, p.Text)
	if told {
		return
	}
	if strings.HasPrefix(string(fallback), "containers") && last(fallback) == "source" {
		at = l.inURL(fallback, raw, at)
		if m := parameter.FindStringSubmatch(raw); m != nil {
			path = join(fallback, m[1]) // a URL may have more mistakes than one
		}
	}
	p.Text, p.Hint = yamlNames(p.Text), yamlNames(p.Hint)
	p.refine()
	p.Path = path
	p.Warning = l.check && strings.Contains(p.Text, "no region is known") // it comes from where the service runs
	l.report(at, p)
	if p.Warning {
		delete(l.broken, path)
	}
}

// meant is the field that a text is about, and told that it has a problem already.
func (l *loader) meant(base, fallback, text string) (at spot, path string, told bool) {
	path = fallback
	for _, name := range goName.FindAllString(text, -1) {
		full := l.fieldAt(base, name)
		if l.told(full) {
			return spot{}, "", true
		}
		if e, ok := l.at[full]; ok {
			return l.spotOfEntry(e), full, false
		}
		if at, ok := l.sourceParameter(base, snake(name)); ok {
			return at, join(base, "source"), false
		}
		if _, known := yamlWords()[first(name)]; known {
			path = full
		}
	}
	return l.place(path), path, false
}

// refine gives a problem of the configuration its code, and takes what to do out of the
// text.
func (p *Problem) refine() {
	switch {
	case strings.Contains(p.Text, "value that is not known"):
		p.Code = CodeUnknownValue
	case p.Code != longshore.CodeConfig:
	case strings.Contains(p.Text, "is not set"), strings.Contains(p.Text, "is missing"), strings.Contains(p.Text, "no topic is named"), strings.Contains(p.Text, "source has no "), strings.Contains(p.Text, "has no name"):
		p.Code = CodeMissing
	case strings.Contains(p.Text, "is not known"):
		p.Code = CodeUnknownKey
	case strings.Contains(p.Text, "does not go with"), strings.Contains(p.Text, "must"), strings.Contains(p.Text, "negative"), strings.Contains(p.Text, "more than"), strings.Contains(p.Text, "or 0 for"):
		p.Code = CodeOutOfRange
	}
	if head, tail, ok := strings.Cut(p.Text, ": must be "); ok && p.Hint == "" {
		p.Text, p.Hint = head, "must be "+tail
	} else if head, tail, ok := strings.Cut(p.Text, ", must be "); ok && p.Hint == "" {
		p.Text, p.Hint = head, "must be "+tail
	}
	for _, todo := range []string{"set ", "leave ", "lower ", "did you mean ", "it must be "} {
		if head, tail, ok := strings.Cut(p.Text, "; "+todo); ok && p.Hint == "" {
			p.Text, p.Hint = head, todo+tail
		}
	}
}

// fieldAt is the path of a field by Go's name: below base, or below the source of the
// container that base is.
func (l *loader) fieldAt(base, name string) string {
	below := sep + strings.ReplaceAll(snake(name), ".", sep)
	if _, ok := l.at[base+below]; !ok && parent(base) == "containers" {
		if source := join(base, "source") + below; l.has(source) {
			return source
		}
	}
	return base + below
}

// sourceParameter is where the URL of a container's source says something.
func (l *loader) sourceParameter(base, name string) (spot, bool) {
	path := join(base, "source")
	if parent(base) != "containers" || !l.has(path) {
		return spot{}, false
	}
	at := l.inURL(path, `parameter "`+name+`"`, l.place(path))
	return at, at.length == len(name)
}

func (l *loader) has(path string) bool {
	_, ok := l.at[path]
	return ok
}

// told tells whether a path or something around it below its container has a problem
// already: what follows from a mistake is not another one.
func (l *loader) told(path string) bool {
	for n := strings.Count(path, sep); n >= 2; n-- {
		if l.broken[path] {
			return true
		}
		path = parent(path)
	}
	return false
}

// inURL points at the parameter of a source's URL that is meant.
func (l *loader) inURL(path, text string, at spot) spot {
	e, ok := l.at[path]
	if !ok || at.line == 0 {
		return at
	}
	n := resolved(e.value)
	if u := entry(n, "url"); u != nil {
		n = resolved(u)
	}
	if !strings.Contains(n.Value, "://") || n.Line == 0 {
		return at
	}
	at = l.spotOf(n)
	from, to := l.extent(n)
	raw := string(l.line(n.Line)[from:to])
	word := ""
	if m := parameter.FindStringSubmatch(text); m != nil {
		word = m[1]
	} else if strings.Contains(text, "port") {
		word = badPort(raw)
	}
	if word == "" {
		return at
	}
	for _, lead := range []string{"?" + word + "=", "&" + word + "=", ":" + word} {
		if i := strings.Index(raw, lead); i >= 0 {
			at.column = from + len([]rune(raw[:i])) + 2
			at.length = len([]rune(word))
			return at
		}
	}
	return at
}

// badPort is the first port of a URL that is not a number.
func badPort(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	hosts, _, _ := strings.Cut(rest, "/")
	for h := range strings.SplitSeq(hosts, ",") {
		if _, port, ok := strings.Cut(h, ":"); ok && strings.Trim(port, "0123456789") != "" {
			return port
		}
	}
	return ""
}

var (
	goName    = regexp.MustCompile(`\b[A-Z][A-Za-z]*(?:\.[A-Za-z_]+)*`)
	parameter = regexp.MustCompile(`parameter "([^"]+)"`)
)

func first(name string) string {
	head, _, _ := strings.Cut(name, ".")
	return head
}

// yamlWords are Go's names of fields and words of the file, with what they are there.
func yamlWords() map[string]string {
	words := map[string]string{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			key := f.Tag.Get("key")
			words[camel(key)] = key
			for w := range strings.SplitSeq(f.Tag.Get("oneof"), "|") {
				if w != "" {
					words[camel(w)] = w
				}
			}
			if s := sectionOf(f.Type); s != nil {
				walk(s)
			}
		}
	}
	walk(reflect.TypeFor[containerSection]())
	walk(reflect.TypeFor[brokerSection]())
	walk(reflect.TypeFor[adminSection]())
	walk(reflect.TypeFor[telemetrySection]())
	delete(words, "Key")
	delete(words, "URL")
	return words
}

func camel(key string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(key, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// yamlNames writes a text about Go's names with those of the file.
func yamlNames(text string) string {
	words := yamlWords()
	text = strings.NewReplacer("amqp.Unlimited", "unlimited", "amqp.NoLinger", "more", "autoscale.Adaptive.", "autoscale.", "autoscale.Consecutive.", "autoscale.",
		", or -1 for none", ", or none", " or -1 for none", "", "set Addr", "set listen", "The address", "listen").Replace(text)
	return goName.ReplaceAllStringFunc(text, func(name string) string {
		parts := strings.Split(name, ".")
		if _, ok := words[parts[0]]; !ok {
			return name
		}
		return snake(name)
	})
}
