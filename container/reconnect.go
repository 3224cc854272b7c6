package container

import (
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
)

// Reconnect subscribes at once instead of after the current backoff, for an operator who has
// just fixed the cause. by is who asked, for the event.
//
// Errors: CodeState if the container is not recovering.
func (c *ListenerContainer) Reconnect(by longshore.Intervention) error {
	r := c.current()
	refuse := func(text string) error {
		return &longshore.Error{Code: longshore.CodeState, Source: c.set.name, Op: fmt.Sprintf("reconnect container %q", c.set.name), Err: errors.New(text)}
	}
	if r == nil {
		return refuse("it was not started")
	}
	var err error
	r.locked(func() {
		if r.axes.Stopping() || r.axes.Sub == state.Failed || r.sub.gen != nil || !r.axes.WantsSubscription(r.sub.opensPaused) {
			err = refuse(fmt.Sprintf("it is %s: no attempt to subscribe is pending", r.hand.reported()))
			return
		}
		r.sub.notUntil = r.s.clock.Now()
		r.wake()
		r.emit(Event{Kind: EventNotice, Text: "resubscribing now, as requested" + byText(by)})
	})
	return err
}
