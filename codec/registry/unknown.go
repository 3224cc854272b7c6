package registry

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// mostUnknown bounds the ids that are remembered: whoever writes nonsense writes much.
const mostUnknown = 1000

// unknown remembers ids that the registry does not have, so that a message that comes
// again, or a flood of such messages, asks once.
type unknown struct {
	mu  sync.Mutex
	ids map[identity]unknownID
}

type unknownID struct {
	err   error
	until time.Time
}

// get returns why an id is unknown; nil: nothing is remembered.
func (u *unknown) get(id identity, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known, ok := u.ids[id]; ok && now.Before(known.until) {
		return known.err
	}
	return nil
}

// put remembers an id. Where there are too many, those that are over go, else all.
func (u *unknown) put(id identity, err error, now, until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.ids) >= mostUnknown {
		for old, known := range u.ids {
			if !now.Before(known.until) {
				delete(u.ids, old)
			}
		}
		if len(u.ids) >= mostUnknown {
			clear(u.ids)
		}
	}
	if u.ids == nil {
		u.ids = map[identity]unknownID{}
	}
	u.ids[id] = unknownID{err, until}
}

// isRegistry says whether a registry answers at the address: then a refusal of an id
// without a code of its own is about the id, and else it is about the address. A
// registry that has given a schema, or a code of its own, has proved it.
func (c *Codec) isRegistry(ctx context.Context, refusal error) bool {
	var answer *sr.ResponseError
	if errors.As(refusal, &answer) && (answer.ErrorCode == noSubject || answer.ErrorCode == noVersion || answer.ErrorCode == noSchema) {
		c.proved.Store(true)
	}
	if c.proved.Load() {
		return true
	}
	if _, err := c.client.SupportedTypes(ctx); err != nil {
		return false
	}
	c.proved.Store(true)
	return true
}
