package admin

import (
	"net/http"
	"strings"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/history"
	"github.com/longshore-go/longshore/transport"
)

// containers are the containers of this instance. The set does not change after New; each
// entry guards its own state. Handlers that only read a container are methods of it.
type containers struct {
	instance string    // the name of this process for people
	list     []*served // in the order of the configuration
	byName   map[string]*served
}

// served is a container with what the server remembers about it.
type served struct {
	*container.ListenerContainer

	meter    meter            // its rate
	past     history.History  // its last 15 minutes
	troubles troubles         // its recent errors
	details  details          // its last detail, shared by all viewers
	broker   brokerView       // what the broker says of its source, shared by all viewers
	dead     transport.Source // its dead letters; nil: their place is not known

	mu     sync.Mutex
	paused *pausedBy // who paused it here; nil: not paused here since the last resume
}

func newContainers(cfg *Config) *containers {
	cs := &containers{instance: cfg.Instance, byName: map[string]*served{}}
	for _, c := range cfg.Containers {
		v := &served{ListenerContainer: c, dead: deadSource(c, cfg.DeadLetters[c.Name()])}
		cs.list, cs.byName[c.Name()] = append(cs.list, v), v
	}
	return cs
}

// deadSource is where the dead letters of a container are: the configured place, else the
// one that DeadLetter.To names on the container's broker.
func deadSource(c *container.ListenerContainer, configured transport.Source) transport.Source {
	if configured != nil {
		return configured
	}
	_, to := c.DeadLetterRoute()
	n, ok := c.Source().(transport.Neighbour)
	if to == "" || !ok {
		return nil
	}
	return n.Neighbour(to[strings.LastIndexByte(to, 0)+1:])
}

// find returns the container of the path, or answers that there is none.
func (cs *containers) find(w http.ResponseWriter, r *http.Request) *served {
	name := r.PathValue("name")
	c := cs.byName[name]
	if c == nil {
		fail(w, http.StatusNotFound, longshore.CodeNotFound, "no container "+clip(name), "see GET /api/containers")
	}
	return c
}

// setPaused remembers who paused the container; nil forgets it.
func (c *served) setPaused(p *pausedBy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = p
}

// pausedBy returns who paused the container, or nil.
func (c *served) pausedBy() *pausedBy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused
}
