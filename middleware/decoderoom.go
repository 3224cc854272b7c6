package middleware

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
)

// roomDelay is after how long what found no room comes back.
const roomDelay = 100 * time.Millisecond

// errNoRoom is why a delivery of a batch comes back: those before it have all the room
// that bodies may take.
var errNoRoom = errors.New("the bodies that are unpacked take all of DecodeConfig.MaxHeld or of the container's MaxBytes")

// holding is the room that the bodies of one call have.
type holding struct {
	c     *decoder
	kept  int64 // of deliveries that are unpacked
	stage int64 // of the one that is being unpacked: of the coding taken off last
	full  bool  // one of this batch found no room
}

// take waits for room, first for that of MaxHeld and then in the container, but not while others of the same batch have some: two batches would
// wait for each other. The room of the coding before is given up first.
func (h *holding) take(ctx context.Context, d *longshore.Delivery, n int64) error {
	room := h.c.room
	room.Release(h.stage)
	h.stage = 0
	switch {
	case room.TryAcquire(n):
	case h.kept > 0:
		return errNoRoom
	default:
		if err := d.Wait(ctx, func(ctx context.Context) error { return room.Acquire(ctx, n) }); err != nil {
			return err
		}
	}
	h.stage = n
	switch err := d.Reserve(ctx, n); {
	case errors.Is(err, longshore.ErrNoRoom):
		return errNoRoom
	default:
		return err
	}
}

// keep ends the unpacking of a delivery.
func (h *holding) keep() { h.kept, h.stage = h.kept+h.stage, 0 }

func (h *holding) release() {
	if n := h.kept + h.stage; n > 0 {
		h.c.room.Release(n)
	}
}
