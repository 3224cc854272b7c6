package throttle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Directive is a control message: what limits the instances of a service are to
// obey. Values are absolute, never "one more", so that it can be received twice, late
// or by an instance that was not there before.
type Directive struct {
	// Version is 1. What has another one is ignored.
	Version int `json:"v"`
	// Scope is the fleet it is for, as in FleetConfig.Scope.
	Scope string `json:"scope"`
	// Target says which limiters obey.
	Target Target `json:"target,omitzero"`
	// Permits, Rate and Burst as in [Override]; nil: says nothing about it.
	Permits *int     `json:"permits,omitempty"`
	Rate    *float64 `json:"rate,omitempty"`
	Burst   *int     `json:"burst,omitempty"`
	// Unset takes the directive for the same target back.
	Unset bool `json:"unset,omitempty"`
	// Share says whether Permits and Rate are for each instance or a total that the
	// live instances divide among them.
	Share Share `json:"share,omitempty"`

	// Seq orders the directives for one target: the higher one counts. With ID it
	// makes a received directive recognisable.
	Seq int64  `json:"seq"`
	ID  string `json:"id"`
	// Issuer and Reason are for people.
	Issuer string `json:"issuer,omitempty"`
	Reason string `json:"reason,omitempty"`
	// IssuedAt is the issuer's time. ExpiresAt is when the configured value returns, by
	// the same clock: what counts is the time between them. Zero: never, which is not
	// allowed for 0 permits or a rate of 0.
	IssuedAt  time.Time `json:"issued_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`

	// Member is set in what instances tell about themselves; then it is not a directive.
	Member *Member `json:"member,omitempty"`

	KeyID     string `json:"kid,omitempty"`
	Signature string `json:"sig,omitempty"`
}

// Target chooses limiters. Empty fields and "*" mean all. Where several directives
// fit, the one that names an instance comes before the one that names a container,
// field by field.
type Target struct {
	Container string `json:"container,omitempty"`
	Instance  string `json:"instance,omitempty"`
}

// Share says what the numbers of a directive are.
type Share string

// The meanings of a directive's numbers.
const (
	Each  Share = "each"  // for every instance; also the zero value
	Total Share = "total" // for all live instances together
)

// Member is what an instance reports about itself.
type Member struct {
	Instance string `json:"instance"`
	Leaving  bool   `json:"leaving,omitempty"`
	Joining  bool   `json:"joining,omitempty"` // asks the others for the state in force
	Applied  string `json:"applied,omitempty"` // ID of a directive that is in force there now
	// Containers are the names of its limiters.
	Containers []string `json:"containers,omitempty"`
	// InForce is the ID of a directive that is announced next, and Left how many
	// milliseconds of it are left: the clocks of two machines need not agree.
	InForce string `json:"in_force,omitempty"`
	Left    int64  `json:"left,omitempty"`
}

const (
	version      = 1
	maxDirective = 4096             // bytes
	skew         = 5 * time.Second  // between two readings of one directive's times
	apart        = 30 * time.Minute // between two clocks; more is refused as a mistake
	seqAhead     = int64(apart / time.Millisecond)
	holdFor      = 15 * time.Minute // of a 0 that says nothing else
	holdMost     = 24 * time.Hour
)

func (t Target) normal() Target {
	if t.Container == "*" {
		t.Container = ""
	}
	if t.Instance == "*" {
		t.Instance = ""
	}
	return t
}

// key names the target on the control topic; a compacted one keeps the last
// directive of each.
func (t Target) key(scope string) string {
	star := func(s string) string {
		if s == "" {
			return "*"
		}
		return s
	}
	return scope + "/" + star(t.Container) + "/" + star(t.Instance)
}

// rank orders targets that fit the same limiter, the special ones first.
func (t Target) rank() int {
	r := 0
	if t.Instance != "" {
		r += 2
	}
	if t.Container != "" {
		r++
	}
	return r
}

func (t Target) fits(container, instance string) bool {
	return (t.Container == "" || t.Container == container) && (t.Instance == "" || t.Instance == instance)
}

// holds says whether the directive lets nothing through.
func (d *Directive) holds() bool {
	return d.Permits != nil && *d.Permits == 0 || d.Rate != nil && *d.Rate == 0
}

// parse reads a control message. Unknown fields are ignored, so that later versions
// can add some.
func parse(body []byte) (*Directive, error) {
	if len(body) > maxDirective {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(body), maxDirective)
	}
	d := &Directive{}
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(d); err != nil {
		return nil, fmt.Errorf("it is not a control message: %w", err)
	}
	if dec.More() {
		return nil, errors.New("it is not a control message: something follows it")
	}
	if d.Version != version {
		return nil, fmt.Errorf("version %d is not known here", d.Version)
	}
	d.Target = d.Target.normal()
	return d, nil
}

// canonical is the signed text: every field but the signature, one a line, in this
// order, as name=value. Strings are quoted as JSON does, times are Unix
// milliseconds, what is absent is empty.
func (d *Directive) canonical() []byte {
	var b strings.Builder
	line := func(name, value string) {
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(value)
		b.WriteByte('\n')
	}
	text := func(name, value string) {
		if value == "" {
			line(name, "")
			return
		}
		q, _ := json.Marshal(value) // a string can always be written
		line(name, string(q))
	}
	number := func(name string, p *int) {
		if p == nil {
			line(name, "")
			return
		}
		line(name, strconv.Itoa(*p))
	}
	at := func(name string, t time.Time) {
		if t.IsZero() {
			line(name, "")
			return
		}
		line(name, strconv.FormatInt(t.UnixMilli(), 10))
	}
	line("v", strconv.Itoa(d.Version))
	text("scope", d.Scope)
	text("container", d.Target.Container)
	text("instance", d.Target.Instance)
	number("permits", d.Permits)
	if d.Rate != nil {
		line("rate", strconv.FormatFloat(*d.Rate, 'f', -1, 64))
	} else {
		line("rate", "")
	}
	number("burst", d.Burst)
	line("unset", strconv.FormatBool(d.Unset))
	text("share", string(d.Share))
	line("seq", strconv.FormatInt(d.Seq, 10))
	text("id", d.ID)
	text("issuer", d.Issuer)
	text("reason", d.Reason)
	at("issued_at", d.IssuedAt)
	at("expires_at", d.ExpiresAt)
	if m := d.Member; m != nil {
		text("member", m.Instance)
		line("leaving", strconv.FormatBool(m.Leaving))
		line("joining", strconv.FormatBool(m.Joining))
		text("applied", m.Applied)
		names, _ := json.Marshal(m.Containers) // strings can always be written
		line("containers", string(names))
		if m.InForce != "" { // only then, so that earlier versions can verify the rest
			text("in_force", m.InForce)
			line("left", strconv.FormatInt(m.Left, 10))
		}
	}
	text("kid", d.KeyID)
	return []byte(b.String())
}
