package survey

import (
	"context"
	"errors"
	"strconv"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Input is a route and how closely to look.
type Input struct {
	From, To transport.Source
	// Identity is the rule of the route.
	Identity func(*longshore.Delivery) string
	// Sample is how many messages are looked at.
	Sample int
	// HeadersExchange: the source is bound to a headers exchange.
	HeadersExchange bool
}

// Report is what a survey found.
type Report struct {
	Sampled    int    // messages looked at
	NotSampled string // why none was looked at; "" = they were
	// IdentityUnknown: messages wait, none was looked at, and the broker gives them no identity.
	IdentityUnknown bool
	Waiting         transport.Remaining
	Exists          bool // the target does
	Target          transport.Remaining
	Keys            int     // different keys in the sample
	TopKey          string  // the most frequent one
	TopShare        float64 // its share of the sample
	Largest         int     // bytes of the largest body
	Limit           int     // bytes that the target takes
	Findings        []Finding
	Changes         []Change
	Privileges      []Privilege
}

// Of surveys a route. Errors are those of the brokers.
func Of(ctx context.Context, in Input) (*Report, error) {
	r := &Report{}
	var err error
	if r.Waiting, _, err = count(ctx, in.From); err != nil {
		return nil, err
	}
	if r.Target, r.Exists, err = count(ctx, in.To); err != nil {
		return nil, err
	}
	from, to := describe(in.From), describe(in.To)
	r.Limit = limitOf(ctx, in.To, to.Transport)
	s := newSample(in.Identity, r.Limit)
	s.brokerIDs = in.Identity == nil && (from.Transport == "aws_sqs" || from.Transport == "kafka")
	err = look(ctx, in.From, in.Sample, s.add)
	switch {
	case errors.Is(err, longshore.CodeUnsupported):
		r.NotSampled = textOf(err)
		r.IdentityUnknown = !s.brokerIDs && r.Waiting.Ready > 0
	case err != nil:
		return nil, err
	}
	s.delayed, s.headersExchange = r.Waiting.Delayed, in.HeadersExchange
	r.Sampled, r.Keys, r.Largest = s.n, len(s.keys), s.largest
	r.TopKey, r.TopShare = s.top()
	r.Findings = s.findings(from.Transport, to.Transport, in.To.Capabilities().Ordering != longshore.OrderNone)
	r.Changes = changes(from.Transport, to.Transport)
	r.Privileges = privileges(from, to)
	return r, nil
}

func textOf(err error) string {
	if e, ok := errors.AsType[*longshore.Error](err); ok && e.Hint != "" {
		return e.Text() + "; " + e.Hint
	}
	return err.Error()
}

func describe(s transport.Source) transport.Description {
	if d, ok := s.(transport.Describer); ok {
		return d.Describe()
	}
	return transport.Description{}
}

func count(ctx context.Context, src transport.Source) (r transport.Remaining, exists bool, err error) {
	c, ok := src.(transport.Remainder)
	if !ok {
		return r, true, nil
	}
	r, err = c.Remaining(ctx)
	if errors.Is(err, longshore.CodeNotFound) {
		return transport.Remaining{}, false, nil
	}
	return r, err == nil, err
}

// limitOf is the largest message that the target takes.
func limitOf(ctx context.Context, to transport.Source, kind string) int {
	if s, ok := to.(transport.SettingsReader); ok {
		settings, err := s.Settings(ctx)
		if n, bad := strconv.Atoi(settings["max.message.bytes"]); err == nil && bad == nil && n > 0 {
			return n
		}
	}
	switch kind {
	case "kafka":
		return 1_048_588
	case "aws_sqs":
		return 1 << 20
	}
	return 16 << 20
}

// look shows up to n messages and takes none.
func look(ctx context.Context, src transport.Source, n int, each func(*longshore.Delivery)) error {
	if s, ok := src.(transport.Scanner); ok {
		_, err := s.Scan(ctx, n, func(d *longshore.Delivery) bool { each(d); return true })
		return err
	}
	b, ok := src.(transport.Browser)
	if !ok {
		return &longshore.Error{Code: longshore.CodeUnsupported, Op: "look at messages", Err: errors.New("the source can only be consumed")}
	}
	for from := ""; n > 0; {
		page, next, err := b.Browse(ctx, from, n)
		if err != nil {
			return err
		}
		for _, d := range page {
			each(d)
		}
		n -= len(page)
		if from = next; next == "" {
			break
		}
	}
	return nil
}
