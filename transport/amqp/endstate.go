package amqp

// intakeState is how far a consumer is on its way out. It only moves forward, but for
// ignoring, which turns into canceled if the last attempt to cancel succeeds.
type intakeState uint8

const (
	intakeOpen     intakeState = iota // messages are asked for, unless it is paused
	intakeLeaving                     // Cancel or Close was called: nothing more is asked for, and returns wait for the cancel
	intakeCanceled                    // the broker has cancelled all consumers: nothing more comes
	intakeIgnoring                    // they could not be cancelled: what comes is held and goes back with the channel
)

// endState is where a consumer stands between its opening and its end.
//
//	intake    handed out           Receive on an empty buffer   returned by Nack
//	open      yes                  waits                        at once
//	leaving   yes                  waits                        after the cancel
//	canceled  what is buffered     ErrCanceled                  at once
//	ignoring  what is buffered     ErrCanceled                  with the channel
//
// Once the last writes have begun, a Receive waits for the end and nothing more is
// written; after the end, Receive returns the error and every settlement is lost.
type endState struct {
	intake  intakeState // how far the end of the intake has come
	written bool        // nothing more may be written: the last settlements are out, or the broker took the consumer away
	err     error       // what Receive returns from then on; nil while the channel lives
}

// leave notes that Cancel or Close was called.
func (s *endState) leave() {
	if s.intake == intakeOpen {
		s.intake = intakeLeaving
	}
}

// cancel notes how an attempt to cancel all consumers went.
func (s *endState) cancel(gone bool) {
	s.intake = intakeIgnoring
	if gone {
		s.intake = intakeCanceled
	}
}

// leaving reports whether Cancel or Close was called.
func (s *endState) leaving() bool { return s.intake != intakeOpen }

// ended reports whether the channel is gone.
func (s *endState) ended() bool { return s.err != nil }

// writable reports whether settlements may be written.
func (s *endState) writable() bool { return !s.written && !s.ended() }

// exhausted reports whether an empty buffer stays empty: Receive returns ErrCanceled then.
// During the last writes it waits for the end instead.
func (s *endState) exhausted() bool { return s.intake >= intakeCanceled && !s.written }

// holdsReturns reports whether what goes back to the queue must wait for the cancel: before
// it, the broker would send the message straight back here.
func (s *endState) holdsReturns() bool { return s.intake == intakeLeaving }
