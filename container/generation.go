package container

import (
	"context"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// stage is how far the life of a consumer has come. It only moves forward.
type stage uint8

const (
	stageOpen      stage = iota // it takes messages, or could
	stageCanceled               // Cancel was called: what it had received may still be handed out
	stageExhausted              // Receive has said that it hands out nothing more
	stageDown                   // it is at its end, and what it delivered is lost
)

// flow says whether a consumer takes messages from the broker.
type flow uint8

const (
	flowOn         flow = iota // it does
	flowPaused                 // Pauser.Pause is in force
	flowBornPaused             // paused since it was opened, and until every hold is over
	flowUnknown                // the last call of Pauser failed: the next tick repeats it
)

// generation is one subscription. Everything that reports about it holds a pointer to
// it, so a report from an earlier one is recognised. Guarded by guard.mu.
type generation struct {
	id   int                    // counts the subscriptions of a run, from 1
	c    transport.Consumer     // set before the generation is shared
	caps longshore.Capabilities // of this consumer: they may depend on what the broker answered
	tag  string                 // the name that the broker lists it under, for operators; empty: it has none

	base   context.Context    //nolint:containedctx // of handlers: what Receive contexts are made of; lives and ends with its struct, not with a call
	ctx    context.Context    //nolint:containedctx // of Receive; made again after each interrupt; lives and ends with its struct, not with a call
	cancel context.CancelFunc // interrupts Receive

	dispatch.Owner // of the deliveries held, parked ones included

	stage   stage                         // how far its life has come
	err     error                         // why it is down
	flow    flow                          // whether it takes messages
	leaving []func(longshore.Origin) bool // what left while a Receive may have had it in hand
	window  request                       // the window that the broker is to grant
	workers request                       // the number of workers that the consumers are to follow
	since   time.Time                     // when it was opened: one that ends soon is opened again late
	fresh   time.Time                     // what the transport has buffered came after it
}

// forward moves the stage on, never back.
func (g *generation) forward(s stage) { g.stage = max(g.stage, s) }

// fail notes that the consumer is at its end; false if that is known.
func (g *generation) fail(err error) bool {
	if g.isDown() {
		return false
	}
	g.stage, g.err = stageDown, err
	return true
}

func (g *generation) isDown() bool { return g.stage == stageDown }

// delivers says whether Receive may still bring something.
func (g *generation) delivers() bool { return g.stage < stageExhausted }

// interrupt makes the receiver come back.
func (g *generation) interrupt() {
	if g.cancel != nil { // else it was never received from
		g.cancel()
	}
}

// rearm lets a generation receive again after an interrupt.
func (g *generation) rearm() {
	if g.ctx == nil || g.ctx.Err() != nil {
		g.ctx, g.cancel = context.WithCancel(g.base)
	}
}

// pause notes that the transport was paused or resumed, or what is known after a call that
// failed. A consumer that was opened paused stays one until it is resumed.
func (g *generation) pause(f flow) {
	if f != flowPaused || g.flow != flowBornPaused {
		g.flow = f
	}
}

// traits is what the intake depends on besides the axes.
func (g *generation) traits() state.Traits {
	return state.Traits{KeepsPlace: g.caps.KeepsPlace, ThrottlePauses: g.caps.LiveResize && g.caps.MaxLease == 0, OpenedPaused: g.flow == flowBornPaused}
}

// patience is how long deliveries may be left unsettled; 0: for ever.
func (g *generation) patience() time.Duration { return g.caps.Lease / 4 * 3 }

// asOne says whether what goes back does so all at once, by closing the consumer. A
// single active one that is cancelled has handed its role on before anything of its
// comes back, so that what is newer is done first; and what it returns without that
// comes straight back to it.
func (g *generation) asOne() bool { return g.caps.SingleActive && g.caps.KeepsPlace }
