package admin

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Trouble is one kind of error and how often it came.
type Trouble struct {
	Code  string    `json:"code"`
	Text  string    `json:"text"`
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// troubles counts the last errors of a container by code.
type troubles struct {
	mu   sync.Mutex
	kind map[string]*Trouble
}

const (
	mostTroubles = 12
	troubleFor   = 15 * time.Minute
)

// note counts an event with an error. Texts differ by ids: the last one of a code stands
// for all.
func (t *troubles) note(e Event) {
	key := cmp.Or(e.Code, "handler")
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kind == nil {
		t.kind = map[string]*Trouble{}
	}
	v := t.kind[key]
	if v == nil && len(t.kind) >= mostTroubles {
		key = "other"
		v = t.kind[key]
	}
	if v == nil || e.Time.Sub(v.Last) > troubleFor {
		v = &Trouble{Code: key, First: e.Time}
		t.kind[key] = v
	}
	v.Text, v.Last = e.Error, e.Time
	v.Count++
}

// list returns the errors of the last 15 minutes, the newest first.
func (t *troubles) list(now time.Time) []Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Trouble, 0, len(t.kind))
	for _, v := range t.kind {
		if now.Sub(v.Last) <= troubleFor {
			list = append(list, *v)
		}
	}
	slices.SortFunc(list, func(a, b Trouble) int { return b.Last.Compare(a.Last) })
	return list
}
