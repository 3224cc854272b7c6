package admin

import (
	"context"
	"net/http"

	"github.com/longshore-go/longshore"
)

// Action is a button of the service itself on the page, for operators.
type Action struct {
	// Name is a word, the same in the API; Label is on the button, Help beside it, and Group
	// before the first one.
	Name  string `json:"name"`
	Label string `json:"label"`
	Help  string `json:"help,omitempty"`
	Group string `json:"group,omitempty"`
	// Do does it and says what it did. It may take as long as ctx.
	Do func(ctx context.Context) (string, error) `json:"-"`
}

func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	for _, a := range s.cfg.Actions {
		if a.Name != r.PathValue("name") {
			continue
		}
		text, err := a.Do(r.Context())
		if err != nil {
			refuse(w, err)
			return
		}
		s.journal.event("", a.Label+": "+text, "", who(r.Context()))
		answer(w, http.StatusOK, map[string]any{"text": text})
		return
	}
	fail(w, http.StatusNotFound, longshore.CodeNotFound, "unknown action "+clip(r.PathValue("name")), "")
}
