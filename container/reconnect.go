package container

import (
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
)

// Reconnect ends the pause before the next attempt to subscribe, so that an operator who has
// cured the cause need not wait for it. by is who asked, for the event.
//
// Errors: CodeState if the container is not recovering.
func (c *ListenerContainer) Reconnect(by longshore.Intervention) error {
	c.mu.Lock()
	r := c.cur
	c.mu.Unlock()
	refuse := func(text string) error {
		return &longshore.Error{Code: longshore.CodeState, Source: c.set.name, Op: fmt.Sprintf("reconnect container %q", c.set.name), Err: errors.New(text)}
	}
	if r == nil {
		return refuse("it was not started")
	}
	var err error
	r.locked(func() {
		if r.axes.Stopping() || r.axes.Sub == state.Failed || r.sub.gen != nil || !r.axes.WantsSubscription(r.sub.opensPaused) {
			err = refuse(fmt.Sprintf("it is %s, and waits for no attempt", r.reported()))
			return
		}
		r.sub.notUntil = r.s.clock.Now()
		r.wake()
		r.emit(Event{Kind: EventNotice, Text: "the next attempt to subscribe was asked for now" + byWhom(by)})
	})
	return err
}

func byWhom(by longshore.Intervention) string {
	text := ""
	if by.By != "" {
		text = " by " + by.By
	}
	if by.Reason != "" {
		text += " (" + by.Reason + ")"
	}
	return text
}
