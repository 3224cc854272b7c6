package sqstest

import (
	"slices"
	"time"
)

// exhausted moves a message that was received as often as the redrive policy
// allows to the dead-letter queue, as SQS does: in place of handing it out once
// more.
func (s *Server) exhausted(q *queue, m *message, now time.Time) bool {
	if q.set.maxReceives == 0 || m.receives < q.set.maxReceives {
		return false
	}
	target := s.queues[q.set.deadLetter]
	if target == nil || target == q {
		return false // it cannot be moved, so it is handed out again and again
	}
	q.remove(m)
	s.move(m, target, q.arn, now)
	return true
}

// move puts a message that was removed into another queue. Id, attributes, group
// and, on standard queues, age stay.
func (s *Server) move(m *message, to *queue, from string, now time.Time) {
	s.serials++
	c := *m
	c.serial, c.index, c.receives, c.from, c.firstReceived = s.serials, 0, 0, from, time.Time{}
	if to.set.fifo {
		c.sent = now
	}
	to.refresh(now)
	to.enter(&c, time.Time{}, now)
}

func (s *Server) listSources(c *call, in *sourcesInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	var names []string
	for name, other := range s.queues {
		if other.set.maxReceives > 0 && other.set.deadLetter == q.name {
			names = append(names, name)
		}
	}
	page, next, err := paged(names, in.NextToken, in.MaxResults)
	if err != nil {
		return nil, err
	}
	out := sourcesOutput{QueueUrls: []string{}, NextToken: next}
	for _, name := range page {
		out.QueueUrls = append(out.QueueUrls, s.urlOf(c, name))
	}
	return out, nil
}

// startMove moves the messages of a dead-letter queue back, all at once; the
// rate that was asked for is not kept.
func (s *Server) startMove(_ *call, in *moveInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.SourceArn == "" {
		return nil, missing("SourceArn")
	}
	q := s.queues[nameOfARN(in.SourceArn)]
	if q == nil {
		return nil, refuse("ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist.")
	}
	if n := valueOr(in.MaxNumberOfMessagesPerSecond, 1); n < 1 || n > 500 {
		return nil, badValue(n, "MaxNumberOfMessagesPerSecond", "Must be between 1 and 500, if provided.")
	}
	if !slices.ContainsFunc(s.all(), func(o *queue) bool { return o.set.maxReceives > 0 && o.set.deadLetter == q.name }) {
		return nil, refuse("InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue.")
	}
	if in.DestinationArn != "" && s.queues[nameOfARN(in.DestinationArn)] == nil {
		return nil, refuse("ResourceNotFoundException", "The resource that you specified for the DestinationArn parameter doesn't exist.")
	}
	now := s.clock()
	q.refresh(now)
	task := &moveTask{TaskHandle: newID(), Status: "COMPLETED", SourceArn: in.SourceArn, DestinationArn: in.DestinationArn,
		ApproximateNumberOfMessagesToMove: q.count[visible], StartedTimestamp: now.UnixMilli()}
	for _, m := range q.inOrder() {
		to := s.queues[nameOfARN(m.from)]
		if in.DestinationArn != "" {
			to = s.queues[nameOfARN(in.DestinationArn)]
		}
		if m.state != visible || to == nil {
			continue
		}
		q.remove(m)
		s.move(m, to, "", now)
		task.ApproximateNumberOfMessagesMoved++
	}
	s.moves = append(s.moves, task)
	return startMoveOutput{TaskHandle: task.TaskHandle}, nil
}

func (s *Server) listMoves(_ *call, in *moveInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[nameOfARN(in.SourceArn)] == nil {
		return nil, refuse("ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist.")
	}
	out := listMovesOutput{Results: []moveTask{}}
	for i := len(s.moves) - 1; i >= 0 && len(out.Results) < max(in.MaxResults, 1); i-- {
		if s.moves[i].SourceArn == in.SourceArn {
			t := *s.moves[i]
			t.TaskHandle = "" // only running ones have a handle
			out.Results = append(out.Results, t)
		}
	}
	return out, nil
}

func (s *Server) cancelMove(_ *call, in *moveInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.moves {
		if t.TaskHandle == in.TaskHandle {
			return nil, refuse("InvalidParameterValue", "The task is not running, only a running task can be canceled.")
		}
	}
	return nil, refuse("ResourceNotFoundException", "The task handle does not exist.")
}

// inOrder lists the messages as they came.
func (q *queue) inOrder() []*message {
	out := make([]*message, 0, len(q.messages))
	for _, m := range q.messages {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *message) int {
		if a.serial < b.serial {
			return -1
		}
		return 1
	})
	return out
}
