package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
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
	// Body is the text for people, JSON on several lines, bytes as a dump; absent for those
	// who are no operators. Cut: it is longer. Masked are the fields that are hidden.
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

// deadSource is where the dead letters of a container are.
func (s *Server) deadSource(c *container.ListenerContainer) transport.Source {
	if src := s.cfg.DeadLetters[c.Name()]; src != nil {
		return src
	}
	_, to := c.DeadLetterRoute()
	n, ok := c.Source().(transport.Neighbour)
	if to == "" || !ok {
		return nil
	}
	return n.Neighbour(to[strings.LastIndexByte(to, 0)+1:])
}

// findDead returns the container of the path and its dead-letter place, or answers
// why there is none.
func (s *Server) findDead(w http.ResponseWriter, r *http.Request) (*container.ListenerContainer, transport.Source) {
	c := s.find(w, r)
	if c == nil {
		return nil, nil
	}
	src := s.deadSource(c)
	if src == nil {
		refuse(w, &longshore.Error{Code: longshore.CodeUnsupported, Op: fmt.Sprintf("look at the dead letters of %q", c.Name()), Err: errors.New("their place is not known here"), Hint: "set admin.Config.DeadLetters"})
	}
	return c, src
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

func (s *Server) letters(w http.ResponseWriter, r *http.Request) {
	_, src := s.findDead(w, r)
	if src == nil {
		return
	}
	n := fewRecords
	if text := r.URL.Query().Get("limit"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > mostLetters {
			fail(w, http.StatusBadRequest, longshore.CodeConfig, "limit is not a number from 1 to "+strconv.Itoa(mostLetters), "")
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookTime)
	defer cancel()
	list := []Letter{}
	whole, err := dlq.Look(ctx, src, n, func(l dlq.Letter) bool {
		list = append(list, letterOf(&l))
		return true
	})
	if err != nil {
		refuse(w, err)
		return
	}
	v := map[string]any{"letters": list, "whole": whole || len(list) < n}
	if b, ok := src.(transport.BrowseCoster); ok {
		v["cost"] = b.BrowseCost()
	}
	answer(w, http.StatusOK, v)
}

func (s *Server) letter(w http.ResponseWriter, r *http.Request) {
	c, src := s.findDead(w, r)
	if src == nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookTime)
	defer cancel()
	id := r.PathValue("id")
	var found *dlq.Letter
	_, err := dlq.Look(ctx, src, lookLetters, func(l dlq.Letter) bool {
		if dlq.Named(l.Delivery, id) {
			found = &l
		}
		return found == nil
	})
	switch has, _ := r.Context().Value(roleKey{}).(role); {
	case err != nil:
		refuse(w, err)
	case found == nil:
		fail(w, http.StatusNotFound, longshore.CodeNotFound, "no dead letter of "+c.Name()+" has the id "+clip(id), "it may have been replayed or removed")
	default:
		answer(w, http.StatusOK, s.wholeLetter(found, has == operator))
	}
}

func (s *Server) wholeLetter(l *dlq.Letter, body bool) WholeLetter {
	v := WholeLetter{Letter: letterOf(l), ContentType: l.ContentType, Headers: []Header{}}
	v.Error, v.Key = cutAt(l.Facts.Error, 4<<10), cutAt(keytext.Of(l.Key), 4<<10)
	m := mask{names: s.cfg.Mask, hidden: map[string]bool{}}
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

const masked = "•••"

// mask hides fields by their names.
type mask struct {
	names  []string
	hidden map[string]bool
}

func (m *mask) hides(name string) bool {
	low := strings.ToLower(name)
	for _, n := range m.names {
		if strings.Contains(low, strings.ToLower(n)) {
			m.hidden[name] = true
			return true
		}
	}
	return false
}

func (m *mask) list() (names []string) {
	for n := range m.hidden {
		names = append(names, n)
	}
	return names
}

// body is a body for people: JSON indented and masked, text as it is, bytes as a dump.
func (m *mask) body(raw []byte) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out bytes.Buffer
	switch {
	case len(raw) > 0 && dec.Decode(&v) == nil && !dec.More():
		if !m.touches(v) { // as it was written, with the order of its fields
			if json.Indent(&out, raw, "", "  ") == nil {
				return out.String()
			}
		}
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false) // it is shown as text
		enc.SetIndent("", "  ")
		if enc.Encode(v) == nil {
			return out.String()
		}
		return ""
	case utf8.Valid(raw):
		return string(raw)
	}
	return hex.Dump(raw[:min(len(raw), mostBody/5)])
}

// touches hides fields in v and tells whether there were any.
func (m *mask) touches(v any) (found bool) {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if m.hides(k) {
				v[k], found = masked, true
			} else if m.touches(v[k]) {
				found = true
			}
		}
	case []any:
		for i := range v {
			if m.touches(v[i]) {
				found = true
			}
		}
	}
	return found
}

// letterFilter is what of the dead letters is meant.
type letterFilter struct {
	IDs    []string `json:"ids"`
	Reason string   `json:"reason"`
	Key    *string  `json:"key"`
}

func (f *letterFilter) filter() dlq.Filter {
	return dlq.Filter{IDs: f.IDs, Reason: f.Reason, Key: f.Key}
}

// exported is one line of an export.
func (m *mask) exported(l *dlq.Letter) any {
	doc := inspect.NewDocument(1, l.Delivery)
	if len(m.names) > 0 {
		text := m.body(l.Body)
		if len(m.hidden) > 0 {
			doc.Body, doc.BodyBase64 = &text, ""
		}
		for i := range doc.Headers {
			if m.hides(doc.Headers[i].Name) {
				doc.Headers[i].Value = masked
			}
		}
	}
	return struct {
		ID      string           `json:"id"`
		Reason  string           `json:"reason,omitempty"`
		Error   string           `json:"error,omitempty"`
		At      time.Time        `json:"at,omitzero"`
		Source  string           `json:"source,omitempty"`
		Message inspect.Document `json:"message"`
	}{cmp.Or(dlq.ID(l.Delivery), doc.ID), l.Facts.Reason, l.Facts.Error, l.Facts.At, l.Facts.Source, doc}
}
