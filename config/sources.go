package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// source decodes a source: a URL, or a mapping whose keys depend on the broker.
func (l *loader) source(path string, n *yaml.Node, v reflect.Value) {
	s := &sourceSection{}
	switch {
	case isNull(n):
		return
	case n.Kind == yaml.ScalarNode:
		l.checkURL(path, n)
		s.URL = n.Value
	default:
		kind := ""
		if n.Kind == yaml.MappingNode {
			kind = l.kindOfSource(path, n)
		}
		l.section(path, n, reflect.ValueOf(s).Elem(), kind)
		l.oneTopic(path, s)
	}
	v.Set(reflect.ValueOf(s))
}

// oneTopic makes the list of topics from a single one.
func (l *loader) oneTopic(path string, s *sourceSection) {
	switch {
	case s.Topic == "":
	case len(s.Topics) > 0:
		at := join(path, "topic")
		l.report(l.spotOfEntry(l.at[at]), Problem{Code: CodeOutOfRange, Path: at, Text: "topic does not go with topics", Hint: "leave one of them out"})
	default:
		s.Topics = []string{s.Topic}
	}
}

// keyHeader is the driver's word for where a message's key is.
func (s *sourceSection) keyHeader() string {
	if s.Key == "routing-key" {
		return ":routing-key"
	}
	return strings.TrimPrefix(s.Key, headerPrefix)
}

// kindOfSource finds the kind of the broker that a source names.
func (l *loader) kindOfSource(path string, n *yaml.Node) string {
	b, url := entry(n, "broker"), entry(n, "url")
	names := slices.Sorted(maps.Keys(l.file.Brokers))
	switch {
	case url != nil:
		for _, e := range pairs(n, maxAliases) {
			if k := e.key.Value; k != "url" && k != "password" && find(fieldsOf(reflect.TypeFor[sourceSection]()), k) != nil {
				l.report(l.spotOf(e.key), Problem{Code: CodeBadValue, Path: join(path, k), Text: "`" + k + "` does not go with url",
					Hint: "say it in the URL, or put the address into brokers and name that one with broker"})
			}
		}
		return ""
	case b == nil:
		p := Problem{Code: CodeMissing, Path: path, Text: "source names no broker", Hint: "add broker: NAME, a name of brokers, or write the source as one URL"}
		if len(names) > 0 {
			p.Hint = "add broker: NAME, one of " + strings.Join(names, ", ")
		}
		l.report(l.spotOf(l.at[path].key), p)
		return ""
	}
	if section, ok := l.file.Brokers[b.Value]; ok {
		return kindOf(section.URL)
	}
	l.noBroker(join(path, "broker"), b, b.Value)
	return ""
}

// noBroker reports a name that none of the brokers has.
func (l *loader) noBroker(path string, at *yaml.Node, name string) {
	names := slices.Sorted(maps.Keys(l.file.Brokers))
	p := Problem{Code: CodeUnknownValue, Path: path, Text: fmt.Sprintf("unknown broker `%s`", name)}
	switch near := closest(name, names); {
	case near != "":
		p.Hint = "did you mean `" + near + "`?"
	case len(names) == 0:
		p.Hint = "the file has no brokers: add brokers: {" + name + ": {url: …}}"
	default:
		p.Hint = "known: " + strings.Join(names, ", ")
	}
	l.report(l.spotOf(at), p)
}

// kindOfBroker finds the kind of a broker by its URL.
func (l *loader) kindOfBroker(path string, n *yaml.Node) string {
	u := entry(n, "url")
	if u == nil {
		l.report(l.spotOf(l.at[path].key), Problem{Code: CodeMissing, Path: join(path, "url"), Text: fmt.Sprintf("broker `%s` has no url", last(path)),
			Hint: "add url: amqp://host/vhost, kafka://host:9092, sqs:// or mem://"})
		return ""
	}
	kind := kindOf(u.Value)
	if kind == "" && u.Value != "" {
		l.hide(u)
		l.report(l.spotOf(u), Problem{Code: CodeUnknownValue, Path: join(path, "url"), Text: "this is not the URL of a broker", Hint: "write amqp://host/vhost, kafka://host:9092, sqs:// or mem://"})
	}
	return kind
}

// kindOf is the kind of broker behind a URL, "" if it is not known.
func kindOf(url string) string {
	scheme, _, ok := strings.Cut(url, "://")
	if !ok {
		return ""
	}
	switch strings.ToLower(scheme) {
	case "amqp", "amqps":
		return onRabbit
	case "kafka", "kafkas":
		return onKafka
	case "sqs":
		return onSQS
	case "mem":
		return onMemory
	}
	return ""
}

// checkURL hides a password and warns of it.
func (rp *reporter) checkURL(path string, n *yaml.Node) {
	rp.hideInURL(n)
	if kindOf(n.Value) == "" {
		rp.hide(n) // who knows what it is
	}
	at, found := rp.passwordSpot(n)
	if from, to := passwordIn(n.Value); from == to || !strings.Contains(n.Value, "@") || n.Line == 0 {
		return // a variable is a place for secrets
	} else if !found {
		at = rp.spotOf(n)
	}
	hint := "use `password: env:NAME` or `file:PATH` next to `url`"
	if last(path) == "source" {
		hint = "write source: {url: …, password: env:NAME} or file:PATH"
	}
	rp.report(at, Problem{Code: CodeSecretInFile, Warning: true, Path: path, Text: "password written into a URL", Hint: hint})
	delete(rp.broken, path)
}
