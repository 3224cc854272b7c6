package urls

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/edit"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// scheme is one kind of URL.
type scheme struct {
	names  []string                                              // before ://
	form   string                                                // how one looks
	params []string                                              // all that are known
	open   func(a *address, o Options) (transport.Source, error) // makes the source of a URL
}

// schemes is the one list of all there are.
func schemes() []scheme { return []scheme{amqpScheme(), kafkaScheme(), memScheme(), sqsScheme()} }

// Options is what a URL cannot say. The zero value works.
type Options struct {
	// Memory is the broker of mem:// URLs. Zero: each source has one of its own,
	// which its Publisher leads to.
	Memory *memory.Broker
	// BrowseCounts allows a source's Browse also where looking counts as a delivery,
	// see amqp.QueueConfig.BrowseCounts.
	BrowseCounts bool
	// Password is that of the user in an amqp or kafka URL, asked for at each connect,
	// and wins over one in the URL. SQS and mem have no place for one.
	Password transport.Secret
	// Management is the URL of RabbitMQ's management API, see amqp.Config.Management.
	Management string
	// NoConsumer: the source is not opened, only published to or looked into. What
	// only a consumer needs, a Kafka group, may then be missing.
	NoConsumer bool
	// DeadLetters: the source is consumed to replay what is in it. A Kafka topic is then
	// read by the group "longshore-dlq." and its name, whatever group the URL names, so
	// that what was replayed is remembered.
	DeadLetters bool
}

// Source makes a source from a URL. It does no I/O.
//
// Errors: longshore.CodeBadAddress for a scheme that is not known or a URL that
// cannot be read, longshore.CodeConfig for parameters; all problems at once.
func Source(rawURL string) (transport.Source, error) { return Options{}.Source(rawURL) }

// Schemes returns one example of each form of URL.
func Schemes() []string {
	var forms []string
	for _, s := range schemes() {
		forms = append(forms, s.form)
	}
	return forms
}

// Source is like the function of that name.
func (o Options) Source(rawURL string) (transport.Source, error) {
	name, rest, found := strings.Cut(rawURL, "://")
	if !found {
		return nil, unknown("a source URL without ://")
	}
	for _, s := range schemes() {
		if !slices.Contains(s.names, strings.ToLower(name)) {
			continue
		}
		a, err := s.read(strings.ToLower(name), rest)
		if err != nil {
			return nil, err
		}
		src, err := s.open(a, o)
		if err := errors.Join(a.problems.Err(), err); err != nil {
			return nil, err
		}
		if c, ok := src.(transport.Checker); ok {
			if err := c.Check(); err != nil {
				return nil, err
			}
		}
		return src, nil
	}
	return nil, unknown("a source URL with an unknown scheme")
}

// unknown must not show the URL: what stands in the place of the scheme may be
// part of a password.
func unknown(what string) error {
	return &longshore.Error{Code: longshore.CodeBadAddress, Op: what, Hint: "known forms: " + strings.Join(Schemes(), ", ")}
}

// address is a URL taken apart. It is read by hand: url.Parse takes no list of
// hosts, and shows its input in errors.
type address struct {
	scheme   string       // before ://
	place    string       // between :// and ?
	values   url.Values   // the parameters that were not taken yet
	query    string       // the parameters as they are written, for lists
	problems problem.List // mistakes in it
	form     string       // how one looks
}

func (s *scheme) read(name, rest string) (*address, error) {
	place, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, &longshore.Error{Code: longshore.CodeBadAddress, Op: "read the parameters of a source URL of the form " + s.form,
			Err: errors.New("they are not encoded as a query"), Hint: "percent-encode % & ; + = and # in values"}
	}
	a := &address{scheme: name, place: place, values: values, query: query, form: s.form}
	a.problems.Op = "source URL of the form " + s.form
	for _, p := range slices.Sorted(maps.Keys(values)) {
		vs := values[p]
		switch {
		case !slices.Contains(s.params, p):
			a.bad(problem.UnknownName, p, "is unknown", s.known(p))
		case len(vs) > 1:
			a.bad(problem.Invalid, p, "is given more than once", "keep one of them")
		}
	}
	return a, nil
}

// known helps with a parameter that is not.
func (s *scheme) known(param string) string {
	list := "known parameters: " + strings.Join(s.params, ", ")
	if best := edit.Nearest(param, s.params); best != "" {
		return fmt.Sprintf("did you mean %q? %s", best, list)
	}
	return list
}

// bad notes what is wrong with a parameter.
func (a *address) bad(kind problem.Kind, param, what, hint string) {
	a.problems.Add(problem.Bad(param, hint, what).In(problem.Parameter).OfKind(kind))
}

// take returns a parameter and removes it from those that are left.
func (a *address) take(param string) string {
	v := a.values.Get(param)
	a.values.Del(param)
	return v
}

// number takes a parameter that is a number of at least 1; 0 if it is absent.
func (a *address) number(param string) int {
	if !a.values.Has(param) {
		return 0
	}
	n, err := strconv.Atoi(a.take(param))
	if err != nil || n < 1 {
		a.bad(problem.OutOfRange, param, "is not a number of at least 1", "write a number from 1 up")
	}
	return n
}

// choice takes a parameter that is one of a few words; "" if it is absent.
func (a *address) choice(param string, words ...string) string {
	if !a.values.Has(param) {
		return ""
	}
	v := a.take(param)
	if !slices.Contains(words, v) {
		a.noSuch(param, v, words)
	}
	return v
}

// spell makes a value lower case, with - in place of _: as the words of this package are.
func (a *address) spell(param string) {
	if a.values.Has(param) {
		a.values.Set(param, strings.ReplaceAll(strings.ToLower(a.values.Get(param)), "_", "-"))
	}
}

// noSuch reports a value that is none of the words. It is not shown: it may be the end of
// a password.
func (a *address) noSuch(param, value string, words []string) {
	hint := "it must be " + strings.Join(words, " or ")
	if near := edit.Nearest(value, words); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	a.bad(problem.UnknownWord, param, "has an unknown value", hint)
}

// list takes a parameter with values separated by commas. A comma that belongs to a value
// is percent-encoded, so the text is split before it is decoded.
func (a *address) list(param string) (items []string) {
	if !a.values.Has(param) {
		return nil
	}
	a.values.Del(param)
	for pair := range strings.SplitSeq(a.query, "&") {
		name, text, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != param {
			continue
		}
		for item := range strings.SplitSeq(text, ",") {
			if item, err := url.QueryUnescape(item); err == nil { // all of it was read before
				items = append(items, item)
			}
		}
		return items
	}
	return nil
}

// beside refuses parameters that say nothing where another one is.
func (a *address) beside(why, hint string, params ...string) {
	for _, p := range params {
		if a.values.Has(p) {
			a.bad(problem.Conflicting, p, "does not go with "+why, hint)
			a.values.Del(p)
		}
	}
}

// noPassword refuses one where there is no place for it.
func (a *address) noPassword(o Options) {
	if !o.Password.IsZero() {
		a.problems.Bad("", "leave it out: only amqp and kafka log in with one", "a password is given for a URL that has no login")
	}
}

// rest is the URL without the parameters that were taken.
func (a *address) rest() string {
	u := a.scheme + "://" + a.place
	if len(a.values) > 0 {
		u += "?" + a.values.Encode()
	}
	return u
}
