package container

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// Seek moves the position of this instance's own partitions: nothing more of them
// starts, handlers that run have DrainTimeout to end, what no handler has is given
// back, the new position is committed, and reading goes on from there. Handlers that
// do not end lose their deliveries (ErrLost). Other partitions go on meanwhile.
//
// Errors: CodeUnsupported where the source is not read by position, CodeState if
// the container is not subscribed, CodeNotFound if no such partition is this
// instance's. After an error the positions are as they were.
func (c *ListenerContainer) Seek(ctx context.Context, to transport.Position) ([]transport.Moved, error) {
	r := c.current()
	refuse := func(code longshore.Code, text, hint string) error {
		return &longshore.Error{Code: code, Source: c.set.name, Op: fmt.Sprintf("seek in container %q", c.set.name), Err: errors.New(text), Hint: hint}
	}
	if r == nil {
		return nil, refuse(longshore.CodeState, "it was not started", "")
	}
	var g *generation
	ready := false
	r.locked(func() { g, ready = r.sub.gen, r.axes.Sub == state.Open && !r.axes.Stopping() })
	if !ready {
		return nil, refuse(longshore.CodeState, "it is not subscribed", "wait until it runs")
	}
	s, ok := g.c.(transport.Seeker)
	if !ok {
		return nil, refuse(longshore.CodeUnsupported, "its source is not read by position", "")
	}
	moved, err := s.Seek(ctx, to, c.set.drain, func() {
		r.receiver.withdraw(g, func(at longshore.Origin) bool {
			return (to.Topic == "" || at.Topic == to.Topic) && (to.Partition < 0 || at.Partition == to.Partition)
		})
	})
	if err == nil {
		r.emit(Event{Kind: EventNotice, Count: len(moved), Text: "seek: " + movedText(moved)})
	}
	return moved, err
}

func movedText(moved []transport.Moved) string {
	parts := make([]string, 0, len(moved))
	for _, m := range moved {
		parts = append(parts, fmt.Sprintf("%s/%d %d → %d", m.Topic, m.Partition, m.From, m.To))
	}
	return strings.Join(parts, ", ")
}
