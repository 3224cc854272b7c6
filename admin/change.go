package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/edit"
	"github.com/longshore-go/longshore/middleware/throttle"
)

// steering changes containers for operators; each change leaves an event and a log line.
type steering struct {
	containers *containers
	journal    journal
	throttles  *throttle.Fleet // throttles all instances; nil without a control topic
}

// because is the body of changes that need nothing but perhaps a reason.
type because struct {
	Reason string `json:"reason"`
}

func (s *steering) pause(w http.ResponseWriter, r *http.Request) {
	var b because
	c := s.containers.find(w, r)
	if c == nil || !read(w, r, &b) {
		return
	}
	was := c.State()
	if ended(w, c.ListenerContainer, "pause") {
		return
	}
	c.setPaused(&pausedBy{By: who(r.Context()), At: time.Now(), Reason: b.Reason})
	c.PauseBy(longshore.Intervention{By: who(r.Context()), Reason: b.Reason})
	s.journal.note(r, c.ListenerContainer, deed{verb: "pause", text: "paused", reason: b.Reason, from: string(was), to: string(c.State())})
	answer(w, http.StatusOK, switched{Container: s.containers.status(c), Before: was})
}

// switched is the answer to a pause or resume: the container as it is now.
type switched struct {
	Container

	// Before is the state that the container had.
	Before container.State `json:"before"`
}

func (s *steering) resume(w http.ResponseWriter, r *http.Request) {
	var b because
	c := s.containers.find(w, r)
	if c == nil || !read(w, r, &b) {
		return
	}
	was := c.State()
	if ended(w, c.ListenerContainer, "resume") {
		return
	}
	c.setPaused(nil)
	c.Resume()
	s.journal.note(r, c.ListenerContainer, deed{verb: "resume", text: "resumed", reason: b.Reason, from: string(was), to: string(c.State())})
	answer(w, http.StatusOK, switched{Container: s.containers.status(c), Before: was})
}

// ended answers a change that makes no sense on a container that stops or has stopped.
func ended(w http.ResponseWriter, c *container.ListenerContainer, verb string) bool {
	st := c.State()
	if st != container.StateDraining && st != container.StateStopped {
		return false
	}
	refuse(w, &longshore.Error{Code: longshore.CodeState, Op: fmt.Sprintf("%s container %q", verb, c.Name()), Err: fmt.Errorf("it is %s", st), Hint: "start the service again"})
	return true
}

// drain answers when the container has drained. It goes on when the client does
// not wait.
func (s *steering) drain(w http.ResponseWriter, r *http.Request) {
	var b because
	c := s.containers.find(w, r)
	if c == nil || !read(w, r, &b) {
		return
	}
	s.journal.note(r, c.ListenerContainer, deed{verb: "drain", text: "drain asked for", reason: b.Reason, from: string(c.State())})
	err := c.Stop(context.WithoutCancel(r.Context()))
	rep := c.Report()
	if rep == nil {
		refuse(w, &longshore.Error{Code: longshore.CodeState, Op: fmt.Sprintf("drain container %q", c.Name()), Err: errors.New("it was not started")})
		return
	}
	v := struct {
		Clean     bool      `json:"clean"`
		Text      string    `json:"text"`
		Took      float64   `json:"took"`
		Completed int       `json:"completed"`
		Released  int       `json:"released"`
		Abandoned int       `json:"abandoned"`
		Unflushed int       `json:"unflushed"`
		Container Container `json:"container"`
	}{err == nil, rep.String(), rep.Took.Seconds(), rep.Completed, rep.Released, rep.Abandoned, rep.Unflushed, s.containers.status(c)}
	answer(w, http.StatusOK, v)
}

func (s *steering) scale(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Min    *int   `json:"min"`
		Max    *int   `json:"max"`
		Reason string `json:"reason"`
	}
	c := s.containers.find(w, r)
	if c == nil || !read(w, r, &b) {
		return
	}
	if ended(w, c.ListenerContainer, "scale") {
		return
	}
	st := c.Stats()
	lo, hi := st.Min, st.Max
	if b.Min != nil {
		lo = *b.Min
	}
	if b.Max != nil {
		hi = *b.Max
	}
	if lo < 1 || hi < 1 {
		refuse(w, &longshore.Error{Code: longshore.CodeConfig, Op: "scale " + c.Name(), Err: errors.New("min and max must be at least 1"), Hint: "to hold everything pause it, or throttle it to 0 permits"})
		return
	}
	if err := c.Scale(lo, hi); err != nil {
		refuse(w, err)
		return
	}
	from, to := span(st.Min, st.Max), span(lo, hi)
	s.journal.note(r, c.ListenerContainer, deed{verb: "scale", text: "workers " + from + " → " + to, reason: b.Reason, from: from, to: to})
	answer(w, http.StatusOK, map[string]any{"before": Workers{Now: st.Workers, Busy: st.Busy, Min: st.Min, Max: st.Max}, "container": s.containers.status(c)})
}

// throttling is the body of a throttle.
type throttling struct {
	Permits *int           `json:"permits"`
	Rate    *float64       `json:"rate"`
	Burst   *int           `json:"burst"`
	Add     *int           `json:"add"`
	Clear   bool           `json:"clear"`
	For     string         `json:"for"`
	Reason  string         `json:"reason"`
	Scope   string         `json:"scope"`
	Share   throttle.Share `json:"share"`
}

// check returns how long it is for; 0: until it is cleared.
func (b *throttling) check() (time.Duration, error) {
	bad := func(format string, args ...any) error {
		return &longshore.Error{Code: longshore.CodeConfig, Op: "throttle", Err: fmt.Errorf(format, args...), Hint: "see GET /api/openapi.json"}
	}
	var d time.Duration
	if b.For != "" {
		var err error
		if d, err = time.ParseDuration(b.For); err != nil || d <= 0 {
			return 0, &longshore.Error{Code: longshore.CodeConfig, Op: "throttle", Err: fmt.Errorf("%q is not a valid hold time", clip(b.For)), Hint: edit.TimeHint(clip(b.For))}
		}
	}
	says := b.Permits != nil || b.Rate != nil || b.Burst != nil || b.Add != nil
	switch {
	case b.Scope != "" && b.Scope != "instance" && b.Scope != "fleet":
		return 0, bad("unknown scope %q: use instance or fleet", clip(b.Scope))
	case b.Clear == says:
		return 0, bad("set permits, rate, burst or add; or set clear alone")
	case b.Permits != nil && b.Add != nil:
		return 0, bad("permits and add exclude each other")
	case b.Permits != nil && *b.Permits < 0, b.Rate != nil && *b.Rate < 0, b.Burst != nil && *b.Burst < 0:
		return 0, bad("permits, rate and burst must not be negative")
	case b.Share != "" && b.Scope != "fleet":
		return 0, bad("only a fleet can share")
	}
	return d, nil
}

func (s *steering) throttle(w http.ResponseWriter, r *http.Request) {
	var b throttling
	c := s.containers.find(w, r)
	if c == nil || !read(w, r, &b) {
		return
	}
	d, err := b.check()
	if err != nil {
		refuse(w, err)
		return
	}
	l := limiter(c.ListenerContainer)
	if l == nil {
		refuse(w, &longshore.Error{Code: longshore.CodeState, Op: fmt.Sprintf("throttle container %q", c.Name()), Err: errors.New("it has no throttle"),
			Hint: "set container.Config.Throttle to throttle.NewUnlimited()"})
		return
	}
	before := l.State()
	if b.Add != nil && b.Scope != "fleet" { // a fleet adds to its own state, not to this instance's share of it
		if before.Permits < 0 {
			refuse(w, &longshore.Error{Code: longshore.CodeState, Op: "throttle " + c.Name(), Err: errors.New("no limit is set, so there is nothing to add to"), Hint: "set permits"})
			return
		}
		n := plus(before.Permits, *b.Add)
		b.Permits = &n
	}
	res := map[string]any{"before": before}
	if b.Scope == "fleet" {
		issued, err := s.issue(r.Context(), c.Name(), &b, d)
		if err != nil {
			refuse(w, err)
			return
		}
		res["issued"] = issued
	} else {
		override(r.Context(), l, &b, d)
	}
	done := deed{verb: "throttle", text: b.String(), reason: b.Reason, from: limitsText(before.Limits), to: limitsText(l.State().Limits), limits: b.Scope != "fleet"}
	if d > 0 {
		done.until = time.Now().Add(d)
	}
	s.journal.note(r, c.ListenerContainer, done)
	res["container"] = s.containers.status(c)
	answer(w, http.StatusOK, res)
}

// override changes this instance. What the request does not name stays as an
// earlier one left it.
func override(ctx context.Context, l *throttle.Limiter, b *throttling, d time.Duration) {
	if b.Clear {
		l.ClearOverride()
		return
	}
	o := throttle.Override{Permits: b.Permits, Rate: b.Rate, Burst: b.Burst, By: who(ctx), Reason: b.Reason}
	if d > 0 {
		o.Until = time.Now().Add(d)
	}
	if was := l.State().Operator; was != nil && d == 0 && was.Until.IsZero() {
		if o.Permits == nil {
			o.Permits = was.Permits
		}
		if o.Rate == nil {
			o.Rate = was.Rate
		}
		if o.Burst == nil {
			o.Burst = was.Burst
		}
	}
	l.Override(o)
}

const fleetWait = 5 * time.Second

func (s *steering) issue(ctx context.Context, name string, b *throttling, d time.Duration) (throttle.Issued, error) {
	if s.throttles == nil {
		return throttle.Issued{}, &longshore.Error{Code: longshore.CodeState, Op: "throttle the fleet", Err: errors.New("this service has no control topic"), Hint: "set admin.Config.Fleet; see docs/how-to/throttle-a-fleet.md"}
	}
	ctx, cancel := context.WithTimeout(ctx, fleetWait)
	defer cancel()
	v := throttle.Directive{Target: throttle.Target{Container: name}, Permits: b.Permits, Rate: b.Rate, Burst: b.Burst, Unset: b.Clear,
		Share: b.Share, Issuer: who(ctx), Reason: b.Reason}
	if d > 0 {
		v.ExpiresAt = time.Now().Add(d)
	}
	if b.Add == nil {
		return s.throttles.Issue(ctx, v)
	}
	issued, err := s.throttles.IssueAdd(ctx, v, *b.Add)
	if err == nil {
		b.Permits = &issued.After.Permits // for the event
	}
	return issued, err
}

func (b *throttling) String() string {
	text := "throttle"
	if b.Clear {
		text += " cleared"
	}
	if b.Permits != nil {
		text += fmt.Sprintf(" permits %d", *b.Permits)
	}
	if b.Rate != nil {
		text += fmt.Sprintf(" rate %v", *b.Rate)
	}
	if b.Burst != nil {
		text += fmt.Sprintf(" burst %d", *b.Burst)
	}
	if b.For != "" {
		text += " for " + b.For
	}
	if b.Scope == "fleet" {
		text += " on the fleet"
	}
	return text
}

func (s *steering) fleet(w http.ResponseWriter, _ *http.Request) {
	if s.throttles == nil {
		fail(w, http.StatusNotFound, longshore.CodeNotFound, "this service has no control topic", "set admin.Config.Fleet")
		return
	}
	answer(w, http.StatusOK, s.throttles.Status())
}

// plus adds without going below 0 or over the end of the numbers.
func plus(n, add int) int {
	if add > 0 && n > math.MaxInt-add {
		return math.MaxInt
	}
	return max(n+add, 0)
}
