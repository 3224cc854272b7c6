package sqstest

import (
	"slices"
	"time"
)

// Fault is something that goes wrong with calls. What is zero does not happen.
// Several at once are possible: latency and a refusal, or one entry and a lost
// answer.
type Fault struct {
	// Action the fault is for, such as "DeleteMessageBatch"; "" = every one.
	Action string
	// Queue by its name; "" = every one.
	Queue string
	// Times is how many calls meet it; 0 = all until it is removed.
	Times int

	// Latency passes before the call is carried out, in real time. A caller that
	// goes away meanwhile has not called.
	Latency time.Duration
	// Code refuses the call without effect: "RequestThrottled",
	// "ServiceUnavailable", "InternalFailure", "AccessDenied", "QueueDoesNotExist" …
	Code string
	// Cut ends the connection before the call is carried out.
	Cut bool
	// Entry refuses single entries of a batch without effect on them: it returns
	// the code ("InternalFailure", "ReceiptHandleIsInvalid" …), or "" for those
	// that go through. It must not call the server.
	Entry func(e Entry) string
	// ServerFault blames the server for what Entry refuses (SenderFault is false)
	// whatever the code is; otherwise the code decides.
	ServerFault bool
	// Hold keeps the answer of a call that was carried out until it is closed.
	Hold <-chan struct{}
	// Lose carries the call out and cuts the connection in place of the answer.
	Lose bool
	// SecondReceipt makes a receive hand out each message of a standard queue
	// twice, with two receipts: both must be deleted. The copy is in the same
	// answer if there is room, otherwise in the next one.
	SecondReceipt bool
}

// faultList are the faults that are set.
type faultList []*Fault

// Inject sets a fault; remove ends it.
func (s *Server) Inject(f Fault) (remove func()) {
	p := &f
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, p)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(p)
	}
}

func (s *Server) drop(p *Fault) {
	s.faults = slices.DeleteFunc(slices.Clone(s.faults), func(q *Fault) bool { return q == p })
}

// match collects the faults of a call and counts them down.
func (s *Server) match(c *call) {
	for _, f := range s.faults {
		if f.Action != "" && f.Action != c.Action || f.Queue != "" && f.Queue != c.Queue {
			continue
		}
		c.faults = append(c.faults, f)
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.drop(f)
			}
		}
	}
}

// before does what faults do before a call.
func (s *Server) before(c *call) error {
	s.mu.Lock()
	s.match(c)
	faults := c.faults
	if len(faults) == 0 {
		s.begin(c)
		s.mu.Unlock()
		return c.ctx.Err()
	}
	s.mu.Unlock()
	for _, f := range faults {
		if err := s.sleep(c.ctx, f.Latency); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.begin(c)
	s.mu.Unlock()
	for _, f := range faults {
		switch {
		case f.Cut:
			return errAborted
		case f.Code != "":
			return refuse(f.Code, "asked for by a test")
		}
	}
	return c.ctx.Err()
}

// after does what faults do with an answer.
func (s *Server) after(c *call) error {
	for _, f := range c.faults {
		if f.Hold == nil {
			continue
		}
		select {
		case <-f.Hold:
		case <-s.done:
			return errAborted
		case <-c.ctx.Done(): // no reader is there to read it
			return errAborted
		}
	}
	for _, f := range c.faults {
		if f.Lose {
			return errAborted
		}
	}
	return nil
}

// failEntry returns the error with which a fault refuses an entry, nil if none does.
func (c *call) failEntry(e Entry) *apiError {
	for _, f := range c.faults {
		if f.Entry == nil {
			continue
		}
		if code := f.Entry(e); code != "" {
			err := refuse(code, "asked for by a test")
			err.server = err.server || f.ServerFault
			return err
		}
	}
	return nil
}

func (c *call) secondReceipt() bool {
	return slices.ContainsFunc(c.faults, func(f *Fault) bool { return f.SecondReceipt })
}
