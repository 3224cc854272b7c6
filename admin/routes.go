package admin

import (
	_ "embed" // the description of the API
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
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
	return []route{
		{http.MethodGet, "/api/containers", local, s.list},
		{http.MethodGet, one, local, s.show},
		{http.MethodPost, one + "/pause", operator, s.pause},
		{http.MethodPost, one + "/resume", operator, s.resume},
		{http.MethodPost, one + "/drain", operator, s.drain},
		{http.MethodPut, one + "/workers", operator, s.scale},
		{http.MethodPut, one + "/throttle", operator, s.throttle},
		{http.MethodGet, one + "/why", local, s.why},
		{http.MethodGet, one + "/inflight", viewer, s.inflight},
		{http.MethodGet, one + "/stuck", operator, s.stuck},
		{http.MethodPost, one + "/records/retry-now", operator, s.retryNow},
		{http.MethodPost, one + "/records/dead-letter", operator, s.deadLetter},
		{http.MethodPost, one + "/records/release", operator, s.release},
		{http.MethodPost, one + "/seek", operator, s.seek},
		{http.MethodGet, "/api/fleet", viewer, s.fleet},
		{http.MethodGet, "/api/events", local, s.events},
		{http.MethodGet, "/api/history", local, s.historyAll},
		{http.MethodGet, one + "/history", local, s.historyOne},
		{http.MethodGet, one + "/detail", viewer, s.detail},
		{http.MethodGet, one + "/dead-letters", viewer, s.letters},
		{http.MethodGet, one + "/dead-letters/{id}", viewer, s.letter},
		{http.MethodPost, one + "/jobs", operator, s.startJob},
		{http.MethodGet, "/api/jobs", viewer, s.listJobs},
		{http.MethodGet, "/api/jobs/{id}", viewer, s.showJob},
		{http.MethodDelete, "/api/jobs/{id}", operator, s.stopJob},
		{http.MethodGet, "/api/jobs/{id}/export", operator, s.download},
		{http.MethodPost, "/api/actions/{name}", operator, s.act},
		{http.MethodGet, "/api/session", local, s.showSession},
		{http.MethodPost, "/api/session", nobody, s.logIn},
		{http.MethodDelete, "/api/session", nobody, s.logOut},
		{http.MethodGet, "/api/openapi.json", local, s.describe},
		{http.MethodGet, "/health/live", nobody, s.live},
		{http.MethodGet, "/health/ready", nobody, s.ready},
		{http.MethodGet, "/health/ready/{name}", nobody, s.ready},
	}
}

// Handler serves the API, for a mux of one's own; tokens and hosts are checked all
// the same. Events and the token file need Start.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.Handle(r.method+" "+r.path, s.needs(r.least, r.serve))
	}
	if s.cfg.Metrics != nil {
		mux.Handle("GET /metrics", s.cfg.Metrics)
	}
	page := console.Handler()
	mux.Handle("GET /{$}", page) // the same for everybody: all that it shows it asks the API for
	mux.Handle("GET /console/", page)
	mux.Handle("/", s.needs(local, func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, longshore.CodeNotFound, "there is no "+r.Method+" "+clip(r.URL.Path), "see GET /api/openapi.json")
	}))
	if s.cfg.Around != nil {
		return s.guard(s.cfg.Around(mux))
	}
	return s.guard(mux)
}

func (s *Server) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openapi) // the client is gone: nobody to tell
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
	_, _ = w.Write(append(raw, '\n')) // the client is gone: nobody to tell
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
