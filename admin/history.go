package admin

import (
	"net/http"
	"strconv"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/history"
)

// historyAll answers with the past of all containers: GET /api/history?seconds=60.
func (s *Server) historyAll(w http.ResponseWriter, r *http.Request) {
	seconds, ok := secondsOf(w, r)
	if !ok {
		return
	}
	list := make([]history.Series, 0, len(s.cfg.Containers))
	for _, c := range s.cfg.Containers {
		list = append(list, s.series(r, c.Name(), seconds))
	}
	answer(w, http.StatusOK, map[string]any{"instance": s.instance, "step": history.Step.Seconds(), "containers": list})
}

// historyOne answers with the past of one container.
func (s *Server) historyOne(w http.ResponseWriter, r *http.Request) {
	c := s.find(w, r)
	if c == nil {
		return
	}
	if seconds, ok := secondsOf(w, r); ok {
		answer(w, http.StatusOK, s.series(r, c.Name(), seconds))
	}
}

func (s *Server) series(r *http.Request, name string, seconds int) history.Series {
	v := s.past[name].Last(time.Now(), seconds)
	v.Container, v.Instance = name, s.instance
	if !sees(r.Context()) {
		v = v.Bare()
	}
	return v
}

// secondsOf is how far back the caller wants to look; without a wish 15 minutes.
func secondsOf(w http.ResponseWriter, r *http.Request) (n int, ok bool) {
	text := r.URL.Query().Get("seconds")
	if text == "" {
		return history.Points, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > history.Points {
		fail(w, http.StatusBadRequest, longshore.CodeConfig, "seconds is not a number from 1 to "+strconv.Itoa(history.Points), "")
		return 0, false
	}
	return n, true
}
