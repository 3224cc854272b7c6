package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// What the broker knows of this container's place among others, for people who look.

// PartitionProgress says how far this instance is in each partition that it has now; nil if
// it is not subscribed, or the source has none. The broker may be asked, so ctx bounds it.
func (c *ListenerContainer) PartitionProgress(ctx context.Context) []transport.PartitionProgress {
	g := c.subscribed()
	if g == nil {
		return nil
	}
	p, ok := g.c.(transport.ProgressReporter)
	if !ok {
		return nil
	}
	return p.PartitionProgress(ctx)
}

// Consumers lists all who consume from the source by the broker's account, other programs
// too. This instance's are marked. The list may be some seconds old.
//
// Errors: CodeUnsupported where the broker cannot be asked, CodeState if the container is
// not subscribed and only its subscription could ask.
func (c *ListenerContainer) Consumers(ctx context.Context) (transport.ConsumerList, error) {
	refuse := func(code longshore.Code, text string) error {
		return &longshore.Error{Code: code, Source: c.set.name, Op: fmt.Sprintf("list the consumers of container %q", c.set.name), Err: errors.New(text)}
	}
	g := c.subscribed()
	lister, ok := c.src.(transport.ConsumerLister)
	if !ok && g != nil {
		lister, ok = g.c.(transport.ConsumerLister)
	}
	switch {
	case !ok && g == nil:
		return transport.ConsumerList{}, refuse(longshore.CodeState, "it is not subscribed")
	case !ok:
		return transport.ConsumerList{}, refuse(longshore.CodeUnsupported, "its broker does not list consumers")
	}
	list, err := lister.Consumers(ctx)
	if err != nil || g == nil {
		return list, err
	}
	return list.Marked(g.tag), nil
}

// subscribed returns the consumer in use; nil: none.
func (c *ListenerContainer) subscribed() (g *generation) {
	r := c.current()
	if r != nil {
		r.locked(func() {
			if r.axes.Sub == state.Open && !r.axes.Stopping() {
				g = r.sub.gen
			}
		})
	}
	return g
}
