package admin

import (
	"net/http"

	"github.com/longshore-go/longshore"
)

// reconnect ends the pause before the next attempt to subscribe.
func (s *steering) reconnect(w http.ResponseWriter, r *http.Request) {
	var b because
	c := s.containers.find(w, r)
	if c == nil || !read(w, r, &b) {
		return
	}
	was := c.State()
	if err := c.Reconnect(longshore.Intervention{By: who(r.Context()), Reason: b.Reason}); err != nil {
		refuse(w, err)
		return
	}
	s.journal.note(r, c.ListenerContainer, deed{verb: "reconnect", text: "tries to connect now", reason: b.Reason, from: string(was), to: string(c.State())})
	answer(w, http.StatusOK, switched{Container: s.containers.status(c), Before: was})
}
