package telemetry

import (
	"encoding/json"
	"net/http"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
)

// Health answers the probes of an orchestrator, for a mux of one's own; package admin
// has the same.
//
//	GET /health/live          503 if a container ended and nobody told it to
//	GET /health/ready         503 while one of them is not ready
//	GET /health/ready/{name}  the same of one
//
// An outage of a broker never fails liveness: a restart would not end it. The answer
// is JSON and names the containers that have something to say, paused ones too, which
// are ready.
func Health(cs ...*container.ListenerContainer) http.Handler {
	h := health(cs)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/live", h.live)
	mux.HandleFunc("GET /health/ready", h.ready)
	mux.HandleFunc("GET /health/ready/{name}", h.ready)
	return mux
}

type health []*container.ListenerContainer

// healthAnswer is the body.
type healthAnswer struct {
	Live       *bool             `json:"live,omitempty"`
	Ready      *bool             `json:"ready,omitempty"`
	Containers map[string]string `json:"containers"`
}

func (h health) live(w http.ResponseWriter, _ *http.Request) {
	ok, said := true, map[string]string{}
	for _, c := range h {
		if s := c.Stats(); !s.Live {
			ok, said[s.Name] = false, s.Reason
		}
	}
	answerHealth(w, ok, healthAnswer{Live: &ok, Containers: said})
}

func (h health) ready(w http.ResponseWriter, r *http.Request) {
	only, found := r.PathValue("name"), false
	ok, said := true, map[string]string{}
	for _, c := range h {
		if only != "" && c.Name() != only {
			continue
		}
		found = true
		s := c.Stats()
		ok = ok && s.Ready
		if s.Reason != "" {
			said[s.Name] = s.Reason
		}
	}
	if only != "" && !found {
		http.Error(w, string(longshore.CodeNotFound)+": no such container", http.StatusNotFound)
		return
	}
	answerHealth(w, ok, healthAnswer{Ready: &ok, Containers: said})
}

func answerHealth(w http.ResponseWriter, ok bool, body healthAnswer) {
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(body) // the client is gone: nobody to tell
}
