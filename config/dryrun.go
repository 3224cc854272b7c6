package config

import (
	"errors"
	"net/url"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs"
)

// standIn takes the place of a source that cannot be used, so that everything else of its
// container is looked at too: one pass names all mistakes.
type standIn struct {
	transport.Source
	transport.Outlet
	real transport.Source // the known facts about it
}

// instead makes one. src is what there is of the source, nil if there is nothing.
func (o *sources) instead(name string, s *sourceSection, src transport.Source) transport.Source {
	q := memory.New(memory.Config{}).Queue(name, memory.QueueConfig{Partitions: 1})
	outlet, ok := q.(transport.Outlet)
	if !ok {
		return q
	}
	if src == nil {
		src = o.readable(s)
	}
	if src == nil {
		src = q
	}
	return standIn{q, outlet, src}
}

// Capabilities are those of the one whose place it takes.
func (s standIn) Capabilities() longshore.Capabilities { return s.real.Capabilities() }

// ValidateOpen asks the one whose place it takes.
func (s standIn) ValidateOpen(o transport.OpenOptions) error {
	if f, ok := s.real.(transport.Validator); ok {
		return f.ValidateOpen(o)
	}
	return nil
}

// filled is a source with a name in place of what it lacks.
func (s *sourceSection) filled(name string) *sourceSection {
	f := *s
	if f.Exchange == "" {
		f.Exchange = name
	}
	if f.Queue == "" && len(f.Queues) == 0 {
		f.Queue = name
	}
	if f.Group == "" {
		f.Group = name
	}
	if len(f.Topics) == 0 {
		f.Topics = []string{name}
	}
	return &f
}

// readable is what can be made of a source that has mistakes: without the parameters of
// its URL that are wrong, else anything on a broker of its kind; nil if that is not known.
func (o *sources) readable(s *sourceSection) transport.Source {
	kind := kindOf(s.URL)
	if s.URL != "" {
		if _, err := o.source(s); err != nil {
			if src, err := o.source(without(s, err)); err == nil {
				return src
			}
		}
	} else if b := o.sections[s.Broker]; b != nil {
		kind = kindOf(b.URL)
	}
	var b broker
	switch kind {
	case onRabbit:
		b.rabbit = amqp.New("amqp://localhost", amqp.Config{})
	case onKafka:
		b.kafka = kafka.New([]string{"localhost"}, kafka.Config{})
	case onSQS:
		b.sqs = sqs.New(sqs.Config{})
	default:
		return nil
	}
	return b.named("check")
}

// behind is what else is wrong with a URL, once its wrong parameters are gone. What they
// were needed for is not a mistake of its own.
func (o *sources) behind(s *sourceSection, err error) error {
	seen := problem.Split(err)
	left := without(s, err)
	if left.URL == s.URL {
		return nil
	}
	_, err = o.source(left)
	var more []error
	for _, e := range newMistakes(err, seen) {
		if p, ok := errors.AsType[*problem.Problem](e); !ok || p.Kind != problem.Missing {
			more = append(more, e)
		}
	}
	return errors.Join(more...)
}

// without is the source without the parameters that an error names.
func without(s *sourceSection, err error) *sourceSection {
	left := *s
	place, query, _ := strings.Cut(s.URL, "?")
	wrong := wrongParameters(err)
	if len(wrong) == 0 {
		return &left
	}
	var kept []string // as they are written: a list says more than its decoded text
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		name, bad := url.QueryUnescape(name)
		if bad != nil {
			return &left
		}
		if pair != "" && !wrong[name] {
			kept = append(kept, pair)
		}
	}
	if left.URL = place; len(kept) > 0 {
		left.URL += "?" + strings.Join(kept, "&")
	}
	return &left
}
