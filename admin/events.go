package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
)

// Event is one line of the stream.
type Event struct {
	ID        int64     `json:"id"`
	Time      time.Time `json:"time"`
	Container string    `json:"container"`
	// Kind is a container.EventKind, or "operator" for what somebody did here.
	Kind   string `json:"kind"`
	Text   string `json:"text,omitempty"`
	Reason string `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"`
	By     string `json:"by,omitempty"`
	// MessageID and Key are of the delivery it is about.
	MessageID string `json:"message_id,omitempty"`
	Key       string `json:"key,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
}

const (
	keepEvents = 1000
	streamBuf  = 256
	statusTick = 500 * time.Millisecond
)

// hub keeps the last events and hands new ones to the streams.
type hub struct {
	mu   sync.Mutex
	last []Event
	next int64
	subs map[chan Event]struct{}
}

func newHub() *hub {
	// Ids go on growing over a restart, so that a stream that resumes misses nothing.
	return &hub{next: time.Now().UnixMilli(), subs: map[chan Event]struct{}{}}
}

func (h *hub) add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	e.ID = h.next
	if len(h.last) == keepEvents {
		h.last = append(h.last[:0], h.last[keepEvents/10:]...)
	}
	h.last = append(h.last, e)
	for ch := range h.subs {
		select {
		case ch <- e:
		default: // too slow: the gap in the ids shows it
		}
	}
}

// subscribe returns what came after id and a channel with the rest.
func (h *hub) subscribe(after int64) (past []Event, ch chan Event, stop func()) {
	ch = make(chan Event, streamBuf)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.last {
		if e.ID > after {
			past = append(past, e)
		}
	}
	h.subs[ch] = struct{}{}
	return past, ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, ch)
	}
}

// watch collects the containers' events and their sums.
func (s *Server) watch(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range s.cfg.Containers {
		wg.Go(func() {
			events, stop := c.Events(streamBuf)
			defer stop()
			for {
				select {
				case e := <-events:
					s.hub.add(eventOf(e))
				case <-ctx.Done():
					return
				}
			}
		})
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			for _, c := range s.cfg.Containers {
				s.meters[c.Name()].rate(c.Stats(), time.Now())
			}
		case <-ctx.Done():
		}
	}
	wg.Wait()
}

func eventOf(e container.Event) Event {
	v := Event{Time: e.Time, Container: e.Container, Kind: string(e.Kind), Text: e.Text, Reason: e.Reason}
	if e.Err != nil {
		v.Code = string(longshore.CodeOf(e.Err))
	}
	if d := e.Delivery; d != nil {
		v.MessageID, v.Key, v.Attempt = d.MessageID, d.Key, d.Attempt
	}
	return v
}

// events streams: a snapshot, then what changes, at most twice a second, and what
// happens. Last-Event-ID resumes.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, longshore.CodeState, fmt.Sprintf("%d streams of events are open", maxStreams), "close one, or ask again later")
		return
	}
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Time{}) // a stream has no end; not every writer can say so
	after := int64(1<<63 - 1)
	if id, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		after = id
	}
	past, ch, stop := s.hub.subscribe(after)
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	all := sees(r.Context())
	send := func(kind string, id int64, v any) bool {
		if e, ok := v.(Event); ok && !all {
			v = e.bare()
		}
		_ = ctl.SetWriteDeadline(time.Now().Add(writeTime)) // a reader that reads nothing for so long is cut off
		raw, err := json.Marshal(v)
		if err != nil {
			return false
		}
		if id > 0 {
			_, err = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", id, kind, raw)
		} else {
			_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, raw)
		}
		return err == nil && ctl.Flush() == nil
	}
	if !send("snapshot", 0, map[string]any{"containers": s.shown(r.Context())}) {
		return
	}
	for _, e := range past {
		if !send("event", e.ID, e) {
			return
		}
	}
	s.stream(r.Context(), ch, send)
}

// bare leaves out ids, keys and texts that may have them.
func (e Event) bare() Event {
	return Event{ID: e.ID, Time: e.Time, Container: e.Container, Kind: e.Kind, Code: e.Code, Attempt: e.Attempt}
}

func (s *Server) stream(ctx context.Context, ch <-chan Event, send func(kind string, id int64, v any) bool) {
	tick := time.NewTicker(statusTick)
	defer tick.Stop()
	var last string
	quiet := 0
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-ch:
			if !send("event", e.ID, e) {
				return
			}
		case <-tick.C:
			now := s.shown(ctx)
			raw, _ := json.Marshal(now) // what cannot be written is not sent either
			quiet++
			if string(raw) == last && quiet < 20 { // a sign of life now and then, so that a dead client is noticed
				continue
			}
			last, quiet = string(raw), 0
			if !send("status", 0, map[string]any{"containers": now}) {
				return
			}
		}
	}
}
