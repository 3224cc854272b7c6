package sqstest

import (
	"slices"
	"strconv"
	"time"
)

func (s *Server) receiveMessage(c *call, in *receiveInput) (any, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	c.Max, c.Visibility = valueOr(in.MaxNumberOfMessages, 1), valueOr(in.VisibilityTimeout, -1)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.note(c)
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if in.ReceiveRequestAttemptId != "" && !q.set.fifo {
		return nil, badValue(in.ReceiveRequestAttemptId, "ReceiveRequestAttemptId", "The request include parameter that is not valid for this queue type")
	}
	c.Wait = valueOr(in.WaitTimeSeconds, q.set.wait)
	s.note(c)
	deadline := s.clock().Add(time.Duration(c.Wait) * time.Second)
	for {
		now := s.clock()
		// Under the lock, so that a caller who went away takes nothing.
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
		if q.removed {
			return nil, refuse("QueueDoesNotExist", "The specified queue does not exist.")
		}
		q.refresh(now)
		if q.count[inFlight] >= s.cfg.MaxInFlight && c.Wait == 0 && !q.set.fifo { // FIFO queues answer empty
			return nil, refuse("OverLimit", "Too many messages in flight in queue %s.", q.name)
		}
		taken := s.take(c, q, in, now)
		if len(taken) > 0 || !now.Before(deadline) {
			return s.handOut(c, q, in, taken), nil
		}
		if err := s.waitFor(c, q, now, deadline); err != nil {
			return nil, err
		}
	}
}

// waitFor gives the lock away until there may be something new.
func (s *Server) waitFor(c *call, q *queue, now, deadline time.Time) error {
	if len(q.due) > 0 && q.due[0].due.Before(deadline) {
		deadline = q.due[0].due
	}
	changed, moved := q.changed, s.virtual.moved
	q.waiting++
	s.mu.Unlock()
	err := s.await(c.ctx, changed, moved, deadline.Sub(now))
	s.mu.Lock()
	q.waiting--
	return err
}

func (in *receiveInput) check() *apiError {
	if n := valueOr(in.MaxNumberOfMessages, 1); n < 1 || n > maxBatch {
		return badValue(n, "MaxNumberOfMessages", "Must be between 1 and 10, if provided.")
	}
	if n := valueOr(in.VisibilityTimeout, 0); n < 0 || n > maxVisibility {
		return badValue(n, "VisibilityTimeout", "Must be between 0 and 43200, if provided.")
	}
	if n := valueOr(in.WaitTimeSeconds, 0); n < 0 || n > maxWait {
		return badValue(n, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided.")
	}
	known := []string{"All", "SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp", "SequenceNumber",
		"MessageDeduplicationId", "MessageGroupId", "AWSTraceHeader", "DeadLetterQueueSourceArn"}
	for _, name := range in.systemNames() {
		if !slices.Contains(known, name) {
			return refuse("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	if !legalID(in.ReceiveRequestAttemptId) {
		return badValue(in.ReceiveRequestAttemptId, "ReceiveRequestAttemptId", "It can only include alphanumeric and punctuation characters. 1 to 128 in length.")
	}
	return nil
}

// systemNames joins the new and the old parameter.
func (in *receiveInput) systemNames() []string {
	if len(in.AttributeNames) == 0 {
		return in.MessageSystemAttributeNames
	}
	return slices.Concat(in.MessageSystemAttributeNames, in.AttributeNames)
}

func valueOr(p *int, or int) int {
	if p == nil {
		return or
	}
	return *p
}

// take makes messages in flight.
func (s *Server) take(c *call, q *queue, in *receiveInput, now time.Time) []*message {
	limit := min(c.Max, s.cfg.MaxInFlight-q.count[inFlight])
	until := now.Add(time.Duration(valueOr(in.VisibilityTimeout, q.set.visibility)) * time.Second)
	if in.ReceiveRequestAttemptId != "" {
		if again := q.again(in.ReceiveRequestAttemptId, until, now); again != nil {
			return again
		}
	}
	var out []*message
	if q.set.fifo {
		out = s.takeGroups(q, limit, until, now)
	} else {
		out = s.takeAny(c, q, limit, until, now)
	}
	if in.ReceiveRequestAttemptId != "" && len(out) > 0 {
		a := attempt{at: now, messages: out}
		for _, m := range out {
			a.receives = append(a.receives, m.receives)
		}
		q.attempts[in.ReceiveRequestAttemptId] = a
	}
	return out
}

// again repeats a receive whose answer was lost: the same messages with the same
// receipts, if all of them are still as they were.
func (q *queue) again(id string, until, now time.Time) []*message {
	for key, a := range q.attempts {
		if now.Sub(a.at) >= dedupWindow {
			delete(q.attempts, key)
		}
	}
	a, ok := q.attempts[id]
	if !ok {
		return nil
	}
	for i, m := range a.messages {
		if m.state != inFlight || m.receives != a.receives[i] {
			return nil
		}
	}
	for _, m := range a.messages {
		q.become(m, inFlight, until)
	}
	return a.messages
}

func (s *Server) takeAny(c *call, q *queue, limit int, until, now time.Time) []*message {
	var out []*message
	for len(out) < limit {
		var m *message
		if len(q.twins) > 0 {
			m, q.twins = q.twins[0], q.twins[1:]
			if q.messages[m.serial] == nil {
				continue
			}
		} else if m = q.ready.pop(); m == nil {
			break
		} else if s.exhausted(q, m, now) {
			continue
		} else if c.secondReceipt() {
			q.twins = append(q.twins, s.twin(q, m))
		}
		q.hand(m, until, now)
		out = append(out, m)
	}
	return out
}

// twin makes the copy of a message that a standard queue hands out by mistake.
func (s *Server) twin(q *queue, m *message) *message {
	s.serials++
	t := *m
	t.serial, t.index, t.state = s.serials, 0, gone
	q.messages[t.serial] = &t
	q.become(&t, delayed, t.sent.Add(time.Duration(q.set.retention)*time.Second)) // until it is handed out
	return &t
}

func (s *Server) takeGroups(q *queue, limit int, until, now time.Time) []*message {
	var out []*message
	for len(out) < limit && len(q.groups.free) > 0 {
		g := q.groups.free[0]
		run := make([]*message, 0, limit)
		for _, m := range g.messages {
			if m.state != visible || len(out)+len(run) == limit {
				break
			}
			run = append(run, m)
		}
		for _, m := range run {
			if !s.exhausted(q, m, now) {
				q.hand(m, until, now)
				out = append(out, m)
			}
		}
	}
	return out
}

// hand makes one message in flight.
func (q *queue) hand(m *message, until, now time.Time) {
	m.receives++
	m.taken = now
	if m.receives == 1 {
		m.firstReceived = now
	}
	q.become(m, inFlight, until)
}

// handOut makes the answer.
func (s *Server) handOut(c *call, q *queue, in *receiveInput, taken []*message) receiveOutput {
	out := receiveOutput{Messages: make([]received, 0, len(taken))}
	c.Entries = slices.Grow(c.Entries, len(taken))
	names := in.systemNames()
	for i, m := range taken {
		r := received{MessageId: m.id, ReceiptHandle: receiptOf(q.name, m.serial, m.receives), MD5OfBody: m.bodyMD5, Body: m.body,
			Attributes: s.systemAttributes(m, names), MessageAttributes: selected(m.attrs, in.MessageAttributeNames)}
		r.MD5OfMessageAttributes = md5OfAttributes(r.MessageAttributes)
		out.Messages = append(out.Messages, r)
		c.Entries = append(c.Entries, Entry{Index: i, MessageID: m.id, Receipt: r.ReceiptHandle, Body: m.body,
			Group: m.group, DedupID: m.dedup, Receives: m.receives})
	}
	return out
}

func (s *Server) systemAttributes(m *message, names []string) map[string]string {
	if len(names) == 0 {
		return nil
	}
	all := slices.Contains(names, "All")
	out := make(map[string]string, 8)
	put := func(name, value string) {
		if value != "" && (all || slices.Contains(names, name)) {
			out[name] = value
		}
	}
	put("SenderId", "AIDASQSTEST0000000000")
	put("SentTimestamp", strconv.FormatInt(m.sent.UnixMilli(), 10))
	put("ApproximateReceiveCount", strconv.Itoa(m.receives))
	put("ApproximateFirstReceiveTimestamp", strconv.FormatInt(m.firstReceived.UnixMilli(), 10))
	put("SequenceNumber", m.sequence)
	put("MessageDeduplicationId", m.dedup)
	put("MessageGroupId", m.group)
	put("DeadLetterQueueSourceArn", m.from)
	if m.trace != nil {
		put("AWSTraceHeader", *m.trace.StringValue)
	}
	return out
}
