package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Level is how bad something is.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // works, but not as one would expect
	Bad  Level = "bad"  // messages are lost, or worked on twice
	// Unknown was not looked at; the hint says how it can be.
	Unknown Level = "unknown"
)

// Check is one thing that was looked at.
type Check struct {
	Area  string // broker, queue, lease, limit, retention, policy
	Level Level
	Text  string // what is
	Hint  string // what to do; "" if nothing
}

// Patient is a queue to be checked.
type Patient struct {
	// Dead is where the container moves its dead letters, or where the broker's own go
	// (SQS). nil: not known.
	Source, Dead transport.Source
	// Own says that the container sees to its dead letters itself, wherever they go.
	Own bool
	// Management is the HTTP API of RabbitMQ with user and password; "" if it is not
	// known. It counts only if it is of the broker of Source.
	Management string
	// From says where Management comes from.
	From   Origin
	VHost  string
	Client *http.Client
	// Handler is how long a handler may take. 0: not known.
	Handler time.Duration
}

func (p *Patient) own() bool { return p.Own || p.Dead != nil }

// Origin says who has named a management API.
type Origin int

// The origins.
const (
	Guessed Origin = iota // not named: it may be absent, or another broker's
	Ambient               // the environment: it may be another broker's
	Named                 // the command line: it must be right
)

// Checkable reports whether Checkup has anything to look at.
func Checkable(src transport.Source) bool {
	s, ok := src.(transport.SettingsReader)
	if !ok {
		return false
	}
	switch s.Vocabulary() {
	case transport.VocabularyRabbitMQ, transport.VocabularyKafka, transport.VocabularySQS:
		return true
	}
	return false
}

// Checkup looks at the settings of a queue that decide what becomes of a message which
// fails, waits or is worked on for long. It changes nothing. Errors: the broker's.
func Checkup(ctx context.Context, p Patient) ([]Check, error) {
	s, ok := p.Source.(transport.SettingsReader)
	if !ok {
		return nil, nil
	}
	if s.Vocabulary() == transport.VocabularyRabbitMQ {
		name := ""
		if d, ok := p.Source.(transport.Describer); ok {
			name = d.Describe().Name
		}
		return checkRabbit(ctx, p, name)
	}
	queue, err := s.Settings(ctx)
	if err != nil {
		return nil, err
	}
	if s.Vocabulary() == transport.VocabularyKafka {
		checks := checkKafka(queue, p.Handler)
		stands, err := standing(ctx, s, queue)
		return append(checks, stands...), err
	}
	var dead map[string]string
	var missing findings
	if d, ok := p.Dead.(transport.SettingsReader); ok {
		switch dead, err = d.Settings(ctx); {
		case errors.Is(err, longshore.CodeNotFound):
			missing.add("limit", Bad, "create the dead-letter queue, or name another one", "the dead-letter queue does not exist: what fails for the last time is kept and tried again")
		case err != nil:
			return nil, err
		}
	}
	return append(checkSQS(queue, dead, p.own(), p.Handler, time.Now()), missing...), nil
}

// findings collects.
type findings []Check

func (f *findings) add(area string, l Level, hint, format string, args ...any) {
	*f = append(*f, Check{Area: area, Level: l, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// span is a time as people say it: in days where it is long.
func span(d time.Duration) string {
	if d >= 48*time.Hour && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}
