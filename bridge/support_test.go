package bridge_test

import (
	"context"
	"errors"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// copies is a place that remembers what was published to it.
type copies struct {
	transport.Source
	strip bool // something on the way removes our hop header

	mu   sync.Mutex
	came []*longshore.Message
}

func (c *copies) Describe() transport.Description {
	d, ok := c.Source.(transport.Describer)
	if !ok {
		return transport.Description{}
	}
	return d.Describe()
}

func (c *copies) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	out, ok := c.Source.(transport.Outlet)
	if !ok {
		return nil, "", errors.ErrUnsupported
	}
	p, self, err := out.Publisher(ctx)
	return &copying{p, c}, self, err
}

// last is what was published last.
func (c *copies) last() *longshore.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.came[len(c.came)-1]
}

// distinct is how many messages came, and of how many identities.
func (c *copies) distinct() [2]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := map[string]bool{}
	for _, m := range c.came {
		id := m.Headers.String(longshore.HeaderID)
		if id == "" {
			id = m.ID
		}
		ids[id] = true
	}
	return [2]int{len(c.came), len(ids)}
}

type copying struct {
	transport.Publisher
	c *copies
}

func (p *copying) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	if p.c.strip {
		for i, m := range msgs {
			bare := m.Clone()
			bare.Headers = nil
			for _, h := range m.Headers {
				if h.Name != longshore.HeaderVia {
					bare.Headers = append(bare.Headers, h)
				}
			}
			msgs[i] = bare
		}
	}
	err := p.Publisher.Publish(ctx, dest, msgs...)
	if err == nil {
		p.c.mu.Lock()
		p.c.came = append(p.c.came, msgs...)
		p.c.mu.Unlock()
	}
	return err
}

// refusing is a target that takes a body for too large.
type refusing struct {
	transport.Source
	body string // "" = none
}

func (r *refusing) Describe() transport.Description {
	d, ok := r.Source.(transport.Describer)
	if !ok {
		return transport.Description{}
	}
	return d.Describe()
}

func (r *refusing) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	out, ok := r.Source.(transport.Outlet)
	if !ok {
		return nil, "", errors.ErrUnsupported
	}
	p, self, err := out.Publisher(ctx)
	return &refuser{p, r}, self, err
}

type refuser struct {
	transport.Publisher
	r *refusing
}

func (p *refuser) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	failed := make(map[int]error)
	var good []*longshore.Message
	for i, m := range msgs {
		if p.r.body != "" && string(m.Body) == p.r.body {
			failed[i] = &longshore.Error{Code: longshore.CodeTooLarge, Op: "publish", Err: errors.New("too large for the target")}
		} else {
			good = append(good, m)
		}
	}
	if len(good) > 0 {
		if err := p.Publisher.Publish(ctx, dest, good...); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return &transport.PartialError{Failed: failed, Total: len(msgs)}
	}
	return nil
}
