package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/internal/inspect"
	"github.com/longshore-go/longshore/internal/keytext"
	"github.com/longshore-go/longshore/transport"
)

// Letter is a dead letter as a list has it.
type Letter struct {
	ID       string    `json:"id"`
	Key      string    `json:"key,omitempty"`
	Reason   string    `json:"reason"`
	Error    string    `json:"error,omitempty"`
	Attempts int       `json:"attempts,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Source   string    `json:"source,omitempty"`
	By       string    `json:"by,omitempty"`
	Replays  int       `json:"replays,omitempty"`
	// Replayed: it was put back and is still in the log.
	Replayed bool `json:"replayed,omitempty"`
	Bytes    int  `json:"bytes"`
}

// WholeLetter is a dead letter with what it carries.
type WholeLetter struct {
	Letter

	ContentType string   `json:"content_type,omitempty"`
	Headers     []Header `json:"headers"`
	// Body is the text for people, JSON on several lines, bytes as a dump; absent for callers
	// who are not operators. Cut: it is longer. Masked are the fields that are hidden.
	Body   *string  `json:"body,omitempty"`
	Cut    bool     `json:"cut,omitempty"`
	Masked []string `json:"masked,omitempty"`
}

// Header is one header of a dead letter.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

const (
	mostLetters = 500
	letterText  = 500 // of an error in a list
	keyText     = 256
	mostBody    = 256 << 10
	lookTime    = 20 * time.Second
	lookLetters = 10_000 // among which one is looked for
)

// deadLetters looks at the dead letters of the containers and does jobs with them.
type deadLetters struct {
	containers *containers
	journal    journal
	mask       []string // parts of the names of hidden fields
	// replayable are the containers with a configured place: a log needs a consumer group
	// to be replayed.
	replayable map[string]transport.Source
	jobs       *jobs
}

func newDeadLetters(cfg *Config, cs *containers, j journal) *deadLetters {
	return &deadLetters{containers: cs, journal: j, mask: cfg.Mask, replayable: cfg.DeadLetters, jobs: &jobs{hub: j.hub}}
}

// find returns the container of the path if its dead letters can be looked at, or answers
// why not.
func (d *deadLetters) find(w http.ResponseWriter, r *http.Request) *served {
	c := d.containers.find(w, r)
	if c != nil && c.dead == nil {
		refuse(w, &longshore.Error{Code: longshore.CodeUnsupported, Op: fmt.Sprintf("look at the dead letters of %q", c.Name()), Err: errors.New("their place is not known here"), Hint: "set admin.Config.DeadLetters"})
		return nil
	}
	return c
}

func letterOf(l *dlq.Letter) Letter {
	f := l.Facts
	return Letter{ID: dlq.ID(l.Delivery), Key: cutAt(keytext.Of(l.Key), keyText), Reason: f.Reason, Error: cutAt(f.Error, letterText), Attempts: f.Attempts, At: f.At, Source: f.Source,
		By: f.By, Replays: f.Replays, Replayed: l.Replayed, Bytes: len(l.Body)}
}

// cutAt bounds a text without breaking a character.
func cutAt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

func (d *deadLetters) list(w http.ResponseWriter, r *http.Request) {
	c := d.find(w, r)
	if c == nil {
		return
	}
	n, ok := numberOf(w, r, "limit", fewRecords, mostLetters)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookTime)
	defer cancel()
	list := []Letter{}
	whole, err := dlq.Look(ctx, c.dead, n, func(l dlq.Letter) bool {
		list = append(list, letterOf(&l))
		return true
	})
	if err != nil {
		refuse(w, err)
		return
	}
	v := map[string]any{"letters": list, "whole": whole || len(list) < n}
	if b, ok := c.dead.(transport.BrowseCoster); ok {
		v["cost"] = b.BrowseCost()
	}
	answer(w, http.StatusOK, v)
}

func (d *deadLetters) show(w http.ResponseWriter, r *http.Request) {
	c := d.find(w, r)
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookTime)
	defer cancel()
	id := r.PathValue("id")
	var found *dlq.Letter
	_, err := dlq.Look(ctx, c.dead, lookLetters, func(l dlq.Letter) bool {
		if dlq.Named(l.Delivery, id) {
			found = &l
		}
		return found == nil
	})
	switch {
	case err != nil:
		refuse(w, err)
	case found == nil:
		fail(w, http.StatusNotFound, longshore.CodeNotFound, "no dead letter of "+c.Name()+" has the id "+clip(id), "it may have been replayed or removed")
	default:
		answer(w, http.StatusOK, wholeLetter(found, d.mask, roleOf(r.Context()) == operator))
	}
}

func wholeLetter(l *dlq.Letter, hide []string, body bool) WholeLetter {
	v := WholeLetter{Letter: letterOf(l), ContentType: l.ContentType, Headers: []Header{}}
	v.Error, v.Key = cutAt(l.Facts.Error, 4<<10), cutAt(keytext.Of(l.Key), 4<<10)
	m := mask{names: hide, hidden: map[string]bool{}}
	for _, h := range inspect.NewDocument(1, l.Delivery).Headers {
		text, ok := h.Value.(string)
		if !ok {
			raw, _ := json.Marshal(h.Value) // made of what JSON has
			text = string(raw)
		}
		if m.hides(h.Name) {
			text = masked
		}
		v.Headers = append(v.Headers, Header{cutAt(h.Name, 256), cutAt(text, 4<<10)})
	}
	if body {
		text := m.body(l.Body)
		v.Cut = len(text) > mostBody
		text = cutAt(text, mostBody)
		v.Body = &text
	}
	v.Masked = m.list()
	return v
}
