package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/fleet"
)

// Gateway is the API of many instances.
type Gateway struct {
	fleet   *fleet.Fleet
	hub     *hub
	streams chan struct{} // a place for each open stream
}

const (
	maxStreams = 32
	maxBody    = 1 << 20
	writeTime  = 10 * time.Second
	aliveEvery = 10 * time.Second
	askFor     = 10 * time.Second
	actFor     = 10 * time.Minute // a drain takes as long as its handlers do
)

// New returns a gateway to instances. Nothing is read before Run.
func New(targets []fleet.Target, cfg fleet.Config) *Gateway {
	var names []string
	for _, t := range targets {
		names = append(names, t.Name)
	}
	g := &Gateway{hub: newHub(names), streams: make(chan struct{}, maxStreams)}
	cfg.Frames = g.hub.hear
	g.fleet = fleet.New(targets, cfg)
	return g
}

// Run reads the instances until ctx ends.
func (g *Gateway) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { g.fleet.Run(ctx) })
	for ctx.Err() == nil {
		select {
		case <-g.fleet.Changed():
			for _, in := range g.fleet.Snapshot().Instances {
				switch in.Status {
				case fleet.Silent:
					g.hub.silent(in.Name, in.Problem, in.Since)
				case fleet.Live:
					g.hub.answers(in.Name)
				case fleet.Asking:
				}
			}
		case <-ctx.Done():
		}
	}
	wg.Wait()
}

// Around serves the API of all instances, and leaves the page, logins and probes to next,
// which also says who asks.
func (g *Gateway) Around(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	as := func(least string, serve func(http.ResponseWriter, *http.Request, object)) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if who, ok := caller(next, w, r, least); ok {
				serve(w, r, who)
			}
		})
	}
	mux.Handle("GET /api/events", as("local", g.events))
	mux.Handle("GET /api/containers", as("local", g.containers))
	mux.Handle("GET /api/history", as("local", g.history))
	mux.Handle("GET /api/compare", as("local", g.compare))
	mux.Handle("GET /api/jobs", as("viewer", g.jobs))
	mux.Handle("GET /api/containers/", as("viewer", g.forward))
	mux.Handle("GET /api/jobs/", as("operator", g.forward)) // exports have bodies
	mux.Handle("GET /api/fleet", as("viewer", g.forward))
	mux.Handle("/api/containers/", as("operator", g.forward))
	mux.Handle("/api/jobs/", as("operator", g.forward))
	return mux
}

// roles are the permissions of a caller, the least first.
func roles() []string { return []string{"none", "local", "viewer", "operator"} }

func rank(role string) int {
	for i, r := range roles() {
		if r == role {
			return i
		}
	}
	return 0
}

// caller asks the admin server who sends a request; a refusal is its answer.
func caller(next http.Handler, w http.ResponseWriter, r *http.Request, least string) (object, bool) {
	q := r.Clone(r.Context())
	q.Method, q.URL, q.Body, q.ContentLength = http.MethodGet, &url.URL{Path: "/api/session"}, http.NoBody, 0
	got := &answerTo{head: http.Header{}, status: http.StatusOK}
	next.ServeHTTP(got, q)
	who, ok := decode(got.body.Bytes())
	if got.status != http.StatusOK || !ok {
		for name, v := range got.head {
			w.Header()[name] = v
		}
		w.WriteHeader(got.status)
		_, _ = w.Write(got.body.Bytes()) // the client is gone
		return nil, false
	}
	switch has := rank(text(who, "role")); {
	case has >= rank(least):
		return who, true
	case has <= rank("local"):
		w.Header().Set("WWW-Authenticate", `Bearer realm="longshore"`)
		fail(w, http.StatusUnauthorized, longshore.CodeAuth, "a token is needed", "log in with the link that longshore console printed, or with a token of it")
	default:
		fail(w, http.StatusForbidden, longshore.CodeForbidden, "a viewer may look, not change", "use an operator's token")
	}
	return nil, false
}

// answerTo keeps an answer.
type answerTo struct {
	head   http.Header
	status int
	body   bytes.Buffer
}

func (a *answerTo) Header() http.Header         { return a.head }
func (a *answerTo) WriteHeader(status int)      { a.status = status }
func (a *answerTo) Write(p []byte) (int, error) { return a.body.Write(p) }

func answer(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"code":"internal","message":"the answer cannot be written"}`)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // what came before may have taken long; not every writer can
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // the client is gone
}

func fail(w http.ResponseWriter, status int, code longshore.Code, message, help string) {
	answer(w, status, object{"code": code, "message": message, "help": help})
}

// refuse is about an instance that could not be asked.
func refuse(w http.ResponseWriter, err error) {
	v := object{"code": longshore.CodeOf(err), "message": err.Error()}
	var e *longshore.Error
	if errors.As(err, &e) {
		v["message"], v["help"] = e.Text(), e.Hint
	}
	answer(w, http.StatusBadGateway, v)
}

func sees(who object) bool { return rank(text(who, "role")) >= rank("viewer") }

func (g *Gateway) containers(w http.ResponseWriter, _ *http.Request, who object) {
	g.hub.mu.Lock()
	v := g.hub.all(object{}, sees(who))
	g.hub.mu.Unlock()
	answer(w, http.StatusOK, only(v, "containers", "instances"))
}

func (g *Gateway) jobs(w http.ResponseWriter, _ *http.Request, who object) {
	g.hub.mu.Lock()
	v := g.hub.all(object{}, sees(who))
	g.hub.mu.Unlock()
	answer(w, http.StatusOK, only(v, "jobs"))
}

// history asks all instances that answer, at the same time.
func (g *Gateway) history(w http.ResponseWriter, r *http.Request, who object) {
	ctx, cancel := context.WithTimeout(r.Context(), askFor)
	defer cancel()
	var live []string
	for _, in := range g.fleet.Snapshot().Instances {
		if in.Status == fleet.Live {
			live = append(live, in.Name)
		}
	}
	parts := make([]json.RawMessage, len(live))
	var wg sync.WaitGroup
	for i, name := range live {
		wg.Go(func() {
			_ = g.fleet.Call(ctx, name, http.MethodGet, "/api/history?"+r.URL.RawQuery, nil, &parts[i]) // its points will come
		})
	}
	wg.Wait()
	all := []any{}
	for i, raw := range parts {
		v, ok := decode(raw)
		if !ok {
			continue
		}
		named(v, live[i])
		for _, c := range objects(v, "containers") {
			if !sees(who) {
				c = bare("history", c)
			}
			all = append(all, c)
		}
	}
	answer(w, http.StatusOK, object{"containers": all})
}

// instanceOf is the one that a request is for. It may be left out where there is no choice.
func (g *Gateway) instanceOf(w http.ResponseWriter, r *http.Request) (string, bool) {
	name := r.URL.Query().Get("instance")
	names := g.fleet.Names()
	switch {
	case name == "" && len(names) == 1:
		return names[0], true
	case name == "":
		fail(w, http.StatusBadRequest, longshore.CodeConfig, "the request names no instance", "add ?instance=NAME; GET /api/containers lists them")
		return "", false
	}
	return name, true
}

// forward hands a request to its instance, with that instance's token, and the answer back.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request, who object) {
	name, ok := g.instanceOf(w, r)
	if !ok {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, longshore.CodeTooLarge, "the body is too large, or was cut", "")
		return
	}
	query := r.URL.Query()
	query.Del("instance")
	path := r.URL.EscapedPath()
	if q := query.Encode(); q != "" {
		path += "?" + q
	}
	ctx, cancel := context.WithTimeout(r.Context(), actFor)
	defer cancel()
	if r.Method != http.MethodGet {
		body = signed(body, text(who, "name"))
	}
	res, err := g.fleet.Forward(ctx, name, fleet.Request{Method: r.Method, Path: path, Body: body})
	if err != nil {
		refuse(w, err)
		return
	}
	defer func() { _ = res.Body.Close() }() // it was read
	hand(w, res, name)
}

// signed adds to the reason who asked for a change: to the instance it is the owner of the
// console's token.
func signed(body []byte, who string) []byte {
	v, ok := decode(body)
	if len(body) == 0 {
		v, ok = object{}, true
	}
	if !ok || who == "" {
		return body
	}
	v["reason"] = strings.TrimSpace(text(v, "reason") + " (" + who + " at the console)")
	raw, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return raw
}

// hand writes an instance's answer: JSON with the instance's name in it, everything else as
// it is.
func hand(w http.ResponseWriter, res *http.Response, instance string) {
	kind := res.Header.Get("Content-Type")
	control := http.NewResponseController(w)
	if strings.HasPrefix(kind, "application/json") && res.Header.Get("Content-Disposition") == "" {
		raw, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
		if err != nil {
			fail(w, http.StatusBadGateway, longshore.CodeUnreachable, instance+" cut its answer", "try again")
			return
		}
		if res.StatusCode == http.StatusUnauthorized { // the console's token, not the viewer's
			res.StatusCode = http.StatusBadGateway
		}
		if v, ok := decode(raw); ok {
			named(v, instance)
			answer(w, res.StatusCode, v)
			return
		}
		fail(w, http.StatusBadGateway, longshore.CodeUnreachable, instance+" does not answer as an admin API does", "check its address")
		return
	}
	for _, name := range []string{"Content-Type", "Content-Disposition", "Content-Length"} {
		if v := res.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(res.StatusCode)
	buf := make([]byte, 64<<10)
	for {
		n, err := res.Body.Read(buf)
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		if _, werr := w.Write(buf[:n]); werr != nil || err != nil {
			return
		}
	}
}

// events streams what all instances stream.
func (g *Gateway) events(w http.ResponseWriter, r *http.Request, who object) {
	select {
	case g.streams <- struct{}{}:
		defer func() { <-g.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, longshore.CodeState, fmt.Sprintf("%d streams of events are open", maxStreams), "close one, or ask again later")
		return
	}
	after := int64(math.MaxInt64)
	for _, v := range []string{r.URL.Query().Get("after"), r.Header.Get("Last-Event-ID")} {
		if id, err := strconv.ParseInt(v, 10, 64); err == nil {
			after = id
		}
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // a stream has no end; not every writer can say so
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	write := func(raw []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTime)) // a reader that reads nothing for so long is cut off
		_, err := w.Write(raw)
		return err == nil
	}
	of := func(f frame) []byte {
		if sees(who) {
			return f.full
		}
		return f.bare
	}
	first, past, v, stop := g.hub.watch(who, after, sees(who))
	defer stop()
	ok := write(first)
	for _, f := range past {
		ok = ok && write(of(f))
	}
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for ok && control.Flush() == nil {
		select {
		case f, open := <-v.ch:
			ok = open && write(of(f))
		case <-alive.C:
			ok = write([]byte(": alive\n\n"))
		case <-r.Context().Done():
			return
		}
	}
}

// compare is the table of containers by instance: totals, one column for each instance, and
// what differs.
func (g *Gateway) compare(w http.ResponseWriter, _ *http.Request, who object) {
	s := g.fleet.Snapshot()
	names := g.fleet.Names()
	rows := []any{}
	for _, group := range fleet.Groups(&s) {
		t := group.Total()
		total := object{"instances": t.Instances, "silent": t.Silent, "rate": t.Rate, "oldest": t.Oldest, "workers": t.Now, "busy": t.Busy, "max": t.Max, "in_flight": t.InFlight,
			"parked": t.Parked, "retried": t.Retried, "dead": t.Dead, "p99": t.P99, "backlog": nil, "permits": nil}
		if t.Backlog >= 0 {
			total["backlog"] = t.Backlog
		}
		if t.Permits >= 0 {
			total["permits"] = t.Permits
		}
		parts := object{}
		for i := range group.Parts {
			p := &group.Parts[i]
			part := object{"status": p.Instance.Status, "state": p.State, "level": p.Level, "rate": p.Rate, "backlog": p.Backlog, "workers": p.Workers.Now, "min": p.Workers.Min, "max": p.Workers.Max, "permits": nil}
			if p.Throttle != nil && p.Throttle.Permits >= 0 {
				part["permits"] = p.Throttle.Permits
			}
			parts[p.Instance.Name] = part
		}
		rows = append(rows, object{"name": group.Name, "total": total, "parts": parts})
	}
	instances := []any{}
	for _, in := range s.Instances {
		v := object{"instance": in.Name, "status": in.Status, "since": in.Since, "version": in.Session.Version}
		if sees(who) {
			v["problem"], v["help"] = in.Problem, in.Help
		}
		instances = append(instances, v)
	}
	answer(w, http.StatusOK, object{"names": names, "instances": instances, "containers": rows, "differences": fleet.Differences(&s)})
}
