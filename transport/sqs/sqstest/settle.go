package sqstest

import (
	"slices"
	"time"
)

// holder finds the message of a receipt. m is nil if the receipt is old or its
// message is gone.
func (q *queue) holder(receipt string) (m *message, err *apiError) {
	if receipt == "" {
		return nil, missing("ReceiptHandle")
	}
	serial, receives, ok := readReceipt(q.name, receipt)
	if !ok {
		return nil, badReceipt(receipt)
	}
	if m := q.messages[serial]; m != nil && m.receives == receives {
		return m, nil
	}
	return nil, nil
}

// drop deletes by receipt. An old receipt, and one of a message that is gone,
// succeed without effect; on a FIFO queue a receipt expires with its timeout.
func (q *queue) drop(receipt string) (id string, err *apiError) {
	m, err := q.holder(receipt)
	switch {
	case err != nil:
		return "", err
	case m == nil && q.set.fifo && q.stale(receipt), m != nil && q.set.fifo && m.state != inFlight:
		return "", badValue(receipt, "ReceiptHandle", "The receipt handle has expired.")
	case m == nil:
		return "", nil
	}
	q.remove(m)
	return m.id, nil
}

// stale distinguishes a receipt that a later one replaced from one whose message is gone.
func (q *queue) stale(receipt string) bool {
	serial, _, _ := readReceipt(q.name, receipt)
	return q.messages[serial] != nil
}

// hide changes the timeout of a message in flight, from now.
func (q *queue) hide(receipt string, seconds *int, now time.Time) (id string, err *apiError) {
	m, err := q.holder(receipt)
	switch {
	case err != nil:
		return "", err
	case seconds == nil:
		return "", missing("VisibilityTimeout")
	case *seconds < 0 || *seconds > maxVisibility:
		return "", badValue(*seconds, "VisibilityTimeout", "Must be between 0 and 43200, if provided.")
	case m == nil:
		return "", badValue(receipt, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
	case m.state != inFlight:
		return m.id, refuse("MessageNotInflight", "The message referred to is not in flight.")
	}
	if *seconds == 0 {
		q.become(m, visible, time.Time{})
		q.wake()
		return m.id, nil
	}
	until := now.Add(time.Duration(*seconds) * time.Second)
	if until.After(m.taken.Add(maxVisibility * time.Second)) {
		return m.id, badValue(*seconds, "VisibilityTimeout", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]")
	}
	q.become(m, inFlight, until)
	q.wake() // open polls wait for the next message that is due
	return m.id, nil
}

func (s *Server) deleteMessage(c *call, in *handleInput) (any, error) {
	return s.settleOne(c, in, func(q *queue, e *handleEntry) (string, *apiError) { return q.drop(e.ReceiptHandle) })
}

func (s *Server) deleteBatch(c *call, in *handleBatchInput) (any, error) {
	return s.settleBatch(c, in, func(q *queue, e *handleEntry) (string, *apiError) { return q.drop(e.ReceiptHandle) })
}

func (s *Server) changeVisibility(c *call, in *handleInput) (any, error) {
	return s.settleOne(c, in, func(q *queue, e *handleEntry) (string, *apiError) {
		return q.hide(e.ReceiptHandle, e.VisibilityTimeout, s.clock())
	})
}

func (s *Server) changeVisibilityBatch(c *call, in *handleBatchInput) (any, error) {
	return s.settleBatch(c, in, func(q *queue, e *handleEntry) (string, *apiError) {
		return q.hide(e.ReceiptHandle, e.VisibilityTimeout, s.clock())
	})
}

type settler func(q *queue, e *handleEntry) (id string, err *apiError)

func (s *Server) settleOne(c *call, in *handleInput, do settler) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.note(c)
	c.Entries = []Entry{{Receipt: in.ReceiptHandle, Visibility: valueOr(in.VisibilityTimeout, 0)}}
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	q.refresh(s.clock())
	id, err := do(q, &handleEntry{ReceiptHandle: in.ReceiptHandle, VisibilityTimeout: in.VisibilityTimeout})
	c.Entries[0].MessageID = id
	if err != nil {
		return nil, err
	}
	return empty{}, nil
}

func (s *Server) settleBatch(c *call, in *handleBatchInput, do settler) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.note(c)
	ids := make([]string, len(in.Entries))
	c.Entries = slices.Grow(c.Entries, len(in.Entries))
	for i, e := range in.Entries {
		ids[i] = e.Id
		c.Entries = append(c.Entries, Entry{Index: i, ID: e.Id, Receipt: e.ReceiptHandle, Visibility: valueOr(e.VisibilityTimeout, 0)})
	}
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(ids); err != nil {
		return nil, err
	}
	q.refresh(s.clock())
	out := handleBatchOutput{Successful: make([]handleResult, 0, len(ids))}
	for i := range in.Entries {
		e := &in.Entries[i]
		if m, _ := q.holder(e.ReceiptHandle); m != nil {
			c.Entries[i].MessageID = m.id
		}
		err := c.failEntry(c.Entries[i])
		if err == nil {
			_, err = do(q, e)
		}
		if err != nil {
			c.Entries[i].Code = err.shape
			out.Failed = append(out.Failed, failed(e.Id, err))
			continue
		}
		out.Successful = append(out.Successful, handleResult{e.Id})
	}
	return out, nil
}
