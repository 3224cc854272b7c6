package admin

import (
	"net/http"
	"time"

	"github.com/longshore-go/longshore/internal/history"
)

// historyAll answers with the past of all containers: GET /api/history?seconds=60.
func (cs *containers) historyAll(w http.ResponseWriter, r *http.Request) {
	seconds, ok := secondsOf(w, r)
	if !ok {
		return
	}
	list := make([]history.Series, 0, len(cs.list))
	for _, c := range cs.list {
		list = append(list, cs.series(r, c, seconds))
	}
	answer(w, http.StatusOK, map[string]any{"instance": cs.instance, "step": history.Step.Seconds(), "containers": list})
}

// historyOne answers with the past of one container.
func (cs *containers) historyOne(w http.ResponseWriter, r *http.Request) {
	c := cs.find(w, r)
	if c == nil {
		return
	}
	if seconds, ok := secondsOf(w, r); ok {
		answer(w, http.StatusOK, cs.series(r, c, seconds))
	}
}

func (cs *containers) series(r *http.Request, c *served, seconds int) history.Series {
	v := c.past.Last(time.Now(), seconds)
	v.Container, v.Instance = c.Name(), cs.instance
	return shownTo(r.Context(), v)
}

// secondsOf is how far back the caller wants to look, by default 15 minutes.
func secondsOf(w http.ResponseWriter, r *http.Request) (n int, ok bool) {
	return numberOf(w, r, "seconds", history.Points, history.Points)
}
