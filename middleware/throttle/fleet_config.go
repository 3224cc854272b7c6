package throttle

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
	"github.com/longshore-go/longshore/transport"
)

// FleetConfig is how an instance takes part in a fleet. The zero value works on a
// broker that only trusted programs can write to; set Keys everywhere else.
type FleetConfig struct {
	// Scope names the fleet: instances of one service. Several may share a control
	// topic. Zero: "default".
	Scope string
	// Instance names this process among them. Zero: the host's name and a random part.
	Instance string
	// Keys: the first one signs directives, all of them verify received ones.
	Keys []Key
	// MinPermits is a floor under the fleet's value. Zero: none.
	MinPermits int
	// MaxPermits and MaxRate are the most that is obeyed; what says more is ignored.
	// Zero: 10,000 and 1,000,000 per second.
	MaxPermits int
	MaxRate    float64
	// RequireSnapshot makes Start fail if the state in force cannot be learnt within
	// 3 s. Zero: Start returns then, and what comes later is obeyed later.
	RequireSnapshot bool
	// ListenOnly publishes nothing: for instances that may not write to the control
	// topic. They cannot share a total, nor tell that they obeyed, nor ask others
	// the state in force: late ones then depend on a topic that keeps, or on the
	// issuer, who repeats every 30 s.
	ListenOnly bool
	// Stream says that the source is a queue that every consumer reads from its
	// beginning (a stream queue of RabbitMQ). Without it a source that is no
	// broadcast is refused: each message would reach one instance only.
	Stream bool
	// Logger gets refusals and the state of the connection as warnings, changes as
	// info. nil: nothing.
	Logger *zap.Logger
	// OnEvent hears of everything, on the goroutine that received it. It must be
	// quick.
	OnEvent func(FleetEvent)
}

// FleetEvent is something that happened to a fleet's control.
type FleetEvent struct {
	Time time.Time
	Kind FleetEventKind
	// Reason says why, for people. Refused says it for programs: "malformed", "signature",
	// "future", "out-of-range", "stale", "expired", "full".
	Reason  string
	Refused string
	// Directive is what it is about; nil: nothing that could be read.
	Directive *Directive
	// Before is, with FleetApplied, the former state for the same target; nil: what is
	// configured.
	Before *Directive
	// Instance is who came or went.
	Instance string
}

// FleetEventKind distinguishes kinds of [FleetEvent].
type FleetEventKind string

// The kinds of fleet events.
const (
	FleetApplied   FleetEventKind = "applied"   // a directive is in force
	FleetRefused   FleetEventKind = "refused"   // a control message was ignored; what was in force stays
	FleetExpired   FleetEventKind = "expired"   // a directive ended; the configured values return
	FleetUndivided FleetEventKind = "undivided" // a total waits until it is known who shares it
	FleetJoined    FleetEventKind = "joined"    // an instance came
	FleetLeft      FleetEventKind = "left"      // an instance went, or was not heard of any more
	FleetConnected FleetEventKind = "connected" // the control topic is read
	FleetLost      FleetEventKind = "lost"      // it is not; the state in force stays until it expires
)

// check fills in the defaults and returns everything that is wrong.
func (c *FleetConfig) check(src transport.Source) error {
	var errs []error
	bad := func(hint, format string, args ...any) {
		errs = append(errs, &longshore.Error{Code: longshore.CodeConfig, Op: "control a fleet's throttles", Err: fmt.Errorf(format, args...), Hint: hint})
	}
	for name, s := range map[string]string{"Scope": c.Scope, "Instance": c.Instance} {
		if strings.ContainsAny(s, "/*") || len(s) > 200 {
			bad("use a name of up to 200 letters", "%s %.64q has a slash or an asterisk, or is too long", name, s)
		}
	}
	for i, k := range c.Keys {
		if k.ID == "" || k.Secret.IsZero() {
			bad("give each key an ID and a Secret", "Keys[%d] is not complete", i)
		}
	}
	if c.MinPermits < 0 || c.MaxPermits < 0 || !(c.MaxRate >= 0) {
		bad("0 is the default", "MinPermits, MaxPermits or MaxRate is negative")
	}
	c.fill()
	if c.MinPermits > c.MaxPermits {
		bad("lower it", "MinPermits %d is more than MaxPermits %d", c.MinPermits, c.MaxPermits)
	}
	if err := everybodyReads(src, c.Stream); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *FleetConfig) fill() {
	if c.Scope == "" {
		c.Scope = "default"
	}
	if c.Instance == "" {
		host, err := os.Hostname()
		if err != nil || host == "" {
			host = "instance"
		}
		host = strings.Map(func(r rune) rune {
			if r == '/' || r == '*' {
				return '-'
			}
			return r
		}, host)
		c.Instance = host[:min(len(host), 100)] + "-" + strings.ToLower(rand.Text()[:6])
	}
	if c.MaxPermits == 0 {
		c.MaxPermits = 10_000
	}
	if c.MaxRate == 0 {
		c.MaxRate = 1e6
	}
	c.Logger = logs.Of(c.Logger)
}

// everybodyReads refuses sources of which each message goes to one instance.
func everybodyReads(src transport.Source, stream bool) error {
	if src == nil {
		return &longshore.Error{Code: longshore.CodeConfig, Op: "control a fleet's throttles", Err: errors.New("the source is nil")}
	}
	d, ok := src.(transport.Describer)
	if !ok || stream || d.Describe().Kind == "broadcast" {
		return nil
	}
	at := d.Describe()
	return &longshore.Error{Code: longshore.CodeUnsupported, Source: at.Name, Op: fmt.Sprintf("control a fleet through %s %s %q", at.Transport, at.Kind, at.Name),
		Err:  errors.New("each of its messages reaches one instance only"),
		Hint: "use a Broadcast source (memory, RabbitMQ, Kafka); Amazon SQS cannot broadcast: see NewPoller"}
}
