package admin

import (
	_ "embed" // the description of the API
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/console"
)

//go:embed openapi.json
var openapi []byte

// route is one line of the API.
type route struct {
	method, path string
	least        role
	serve        http.HandlerFunc
}

// routes are all that the API has; openapi.json describes them.
func (s *Server) routes() []route {
	const one = "/api/containers/{name}"
	cs, do, dead, in := s.containers, s.steering, s.deadLetters, s.access
	return []route{
		{http.MethodGet, "/api/containers", local, cs.showAll},
		{http.MethodGet, one, local, cs.show},
		{http.MethodPost, one + "/pause", operator, do.pause},
		{http.MethodPost, one + "/resume", operator, do.resume},
		{http.MethodPost, one + "/reconnect", operator, do.reconnect},
		{http.MethodPost, one + "/drain", operator, do.drain},
		{http.MethodPut, one + "/workers", operator, do.scale},
		{http.MethodPut, one + "/throttle", operator, do.throttle},
		{http.MethodGet, one + "/why", local, cs.why},
		{http.MethodGet, one + "/inflight", viewer, cs.inflight},
		{http.MethodGet, one + "/stuck", operator, cs.stuck},
		{http.MethodPost, one + "/records/retry-now", operator, do.intervene("retry-now", "record retried now", (*container.ListenerContainer).RetryNow)},
		{http.MethodPost, one + "/records/dead-letter", operator, do.intervene("dead-letter", "record dead-lettered", (*container.ListenerContainer).DeadLetterNow)},
		{http.MethodPost, one + "/records/release", operator, do.intervene("release", "record given back to the broker", (*container.ListenerContainer).ReleaseNow)},
		{http.MethodPost, one + "/seek", operator, do.seek},
		{http.MethodGet, "/api/fleet", viewer, do.fleet},
		{http.MethodGet, "/api/events", local, s.feed.events},
		{http.MethodGet, "/api/history", local, cs.historyAll},
		{http.MethodGet, one + "/history", local, cs.historyOne},
		{http.MethodGet, one + "/detail", viewer, cs.detail},
		{http.MethodGet, one + "/dead-letters", viewer, dead.list},
		{http.MethodGet, one + "/dead-letters/{id}", viewer, dead.show},
		{http.MethodPost, one + "/jobs", operator, dead.startJob},
		{http.MethodGet, "/api/jobs", viewer, dead.listJobs},
		{http.MethodGet, "/api/jobs/{id}", viewer, dead.showJob},
		{http.MethodDelete, "/api/jobs/{id}", operator, dead.stopJob},
		{http.MethodGet, "/api/jobs/{id}/export", operator, dead.download},
		{http.MethodPost, "/api/actions/{name}", operator, s.act},
		{http.MethodGet, "/api/session", local, in.showSession},
		{http.MethodPost, "/api/session", nobody, in.logIn},
		{http.MethodDelete, "/api/session", nobody, in.logOut},
		{http.MethodGet, "/api/openapi.json", local, describe},
		{http.MethodGet, "/health/live", nobody, cs.live},
		{http.MethodGet, "/health/ready", nobody, cs.ready},
		{http.MethodGet, "/health/ready/{name}", nobody, cs.ready},
	}
}

// Handler serves the API, for a mux of one's own; it still checks
// tokens and hosts. Events and the token file need Start.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.Handle(r.method+" "+r.path, s.access.needs(r.least, r.serve))
	}
	if s.cfg.Metrics != nil {
		mux.Handle("GET /metrics", s.cfg.Metrics)
	}
	page := console.Handler()
	mux.Handle("GET /{$}", page) // needs no role: everything it shows comes from the API
	mux.Handle("GET /console/", page)
	mux.Handle("/", s.access.needs(local, func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, longshore.CodeNotFound, "unknown "+r.Method+" "+clip(r.URL.Path), "see GET /api/openapi.json")
	}))
	if s.cfg.Around != nil {
		return s.access.guard(s.cfg.Around(mux))
	}
	return s.access.guard(mux)
}

func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openapi) // the client is gone
}

// errorBody is the body of an error.
type errorBody struct {
	Code    longshore.Code `json:"code"`
	Message string         `json:"message"`
	Help    string         `json:"help,omitempty"`
}

func fail(w http.ResponseWriter, status int, code longshore.Code, message, help string) {
	answer(w, status, errorBody{code, message, help})
}

// refuse answers with what went wrong inside.
func refuse(w http.ResponseWriter, err error) {
	p, status := errorBody{Code: longshore.CodeOf(err), Message: strings.TrimPrefix(err.Error(), "longshore: ")}, http.StatusInternalServerError
	var e *longshore.Error
	if errors.As(err, &e) {
		p.Message, p.Help = e.Text(), e.Hint
	}
	switch p.Code {
	case longshore.CodeConfig:
		status = http.StatusBadRequest
	case longshore.CodeState, longshore.CodeDrain:
		status = http.StatusConflict
	case longshore.CodeUnsupported:
		status = http.StatusConflict
	case longshore.CodeNotFound:
		status = http.StatusNotFound
	case longshore.CodeUnreachable, longshore.CodeConnLost, longshore.CodeTimeout, longshore.CodeMaybeSent, longshore.CodeDeadLetter:
		status = http.StatusBadGateway
	}
	answer(w, status, p)
}

func answer(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"code":"internal","message":"the answer cannot be written"}`)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // what came before may have taken long; not every writer can
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // the client is gone
}

// numberOf reads a number from 1 to most from the query, or answers what is wrong with it.
func numberOf(w http.ResponseWriter, r *http.Request, name string, usual, most int) (n int, ok bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return usual, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		fail(w, http.StatusBadRequest, longshore.CodeConfig, name+" is not a number from 1 to "+strconv.Itoa(most), "")
		return 0, false
	}
	return n, true
}

const maxBody = 1 << 16

// read reads the body of a change into v; an empty one is as {}.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, longshore.CodeTooLarge, "the body is too large, or was cut", "")
		return false
	}
	if len(body) == 0 {
		return true
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, longshore.CodeConfig, "the body is not JSON", "send Content-Type: application/json")
		return false
	}
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil || dec.More() {
		text := "something follows it"
		if err != nil {
			text = err.Error()
		}
		fail(w, http.StatusBadRequest, longshore.CodeConfig, "the body cannot be understood: "+text, "see GET /api/openapi.json")
		return false
	}
	return true
}
