package sqstest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// draft is a message that was checked and is not yet in a queue.
type draft struct {
	*message
	delay        *int
	attributeMD5 string
}

// prepare does the checks that need no queue. It is called without the lock:
// checksums of a large body take their time.
func prepare(in *outgoing) (draft, *apiError) {
	d := draft{message: &message{}}
	if in.MessageBody == nil {
		return d, missing("MessageBody")
	}
	if *in.MessageBody == "" {
		return d, missing("MessageBody")
	}
	if !legalText(*in.MessageBody) {
		return d, refuse("InvalidMessageContents", "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
	}
	if _, err := checkAttributes(in.MessageAttributes); err != nil {
		return d, err
	}
	for name, a := range in.MessageSystemAttributes {
		if name != "AWSTraceHeader" || a.DataType != "String" || a.StringValue == nil {
			return d, refuse("InvalidParameterValue", "Message system attribute name %q is invalid.", name)
		}
		d.trace = &a
	}
	if in.DelaySeconds != nil && (*in.DelaySeconds < 0 || *in.DelaySeconds > maxDelay) {
		return d, badValue(*in.DelaySeconds, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")
	}
	if !legalID(in.MessageGroupId) {
		return d, badValue(in.MessageGroupId, "MessageGroupId", "MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
	}
	if !legalID(in.MessageDeduplicationId) {
		return d, badValue(in.MessageDeduplicationId, "MessageDeduplicationId", "MessageDeduplicationId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
	}
	d.body, d.attrs = *in.MessageBody, in.MessageAttributes
	d.group, d.dedup, d.delay = in.MessageGroupId, in.MessageDeduplicationId, in.DelaySeconds
	d.bodyMD5, d.attributeMD5 = md5Of(d.body), md5OfAttributes(d.attrs)
	return d, nil
}

// size is what SQS counts: the body and the attributes' names, types and values.
func (m *message) size() int {
	n := len(m.body)
	for name, a := range m.attrs {
		n += len(name) + len(a.DataType) + len(a.BinaryValue)
		if a.StringValue != nil {
			n += len(*a.StringValue)
		}
	}
	return n
}

// accept puts a draft into the queue. The caller holds the lock.
func (s *Server) accept(q *queue, d *draft) (sendOutput, *apiError) {
	var out sendOutput
	now := s.clock()
	if n := d.size(); n > q.set.maxSize {
		return out, refuse("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must be shorter than %d bytes, this one has %d.", q.set.maxSize, n)
	}
	if err := q.address(d); err != nil {
		return out, err
	}
	key := d.dedup
	if q.set.perGroupDedup {
		key = d.group + "\x00" + key
	}
	out = sendOutput{MD5OfMessageBody: d.bodyMD5, MD5OfMessageAttributes: d.attributeMD5}
	if d.trace != nil {
		out.MD5OfMessageSystemAttributes = md5OfAttributes(map[string]attribute{"AWSTraceHeader": *d.trace})
	}
	if q.set.fifo {
		if a, ok := q.dedup.find(key, now); ok {
			out.MessageId, out.SequenceNumber = a.id, a.sequence
			return out, nil
		}
		q.sequence++
		d.sequence = fmt.Sprintf("%020d", 17_850_000_000_000_000_000+q.sequence*256)
	}
	s.serials++
	m := d.message
	m.serial, m.id, m.sent = s.serials, newID(), now
	delay := q.set.delay
	if d.delay != nil {
		delay = *d.delay
	}
	q.refresh(now)
	q.enter(m, now.Add(time.Duration(delay)*time.Second), now)
	if q.set.fifo {
		q.dedup.add(key, accepted{now, m.id, m.sequence})
	}
	out.MessageId, out.SequenceNumber = m.id, m.sequence
	return out, nil
}

// address checks group, deduplication id and delay against the kind of queue.
func (q *queue) address(d *draft) *apiError {
	if !q.set.fifo {
		if d.dedup != "" {
			return badValue(d.dedup, "MessageDeduplicationId", "The request include parameter that is not valid for this queue type")
		}
		return nil // a group id is for fair queues
	}
	if d.group == "" {
		return missing("MessageGroupId")
	}
	if d.delay != nil && *d.delay > 0 {
		return badValue(*d.delay, "DelaySeconds", "The request include parameter that is not valid for this queue type")
	}
	if d.dedup == "" {
		if !q.set.contentDedup {
			return refuse("InvalidParameterValue", "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
		}
		sum := sha256.Sum256([]byte(d.body))
		d.dedup = hex.EncodeToString(sum[:])
	}
	return nil
}

func (s *Server) sendMessage(c *call, in *sendInput) (any, error) {
	d, err := prepare(&in.outgoing)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.note(c)
	e := entryOf(0, "", &in.outgoing)
	c.Entries = []Entry{e}
	q, noQueue := s.find(in.QueueUrl)
	if noQueue != nil {
		return nil, noQueue
	}
	if err != nil {
		return nil, err
	}
	out, err := s.accept(q, &d)
	if err != nil {
		return nil, err
	}
	c.Entries[0].MessageID = out.MessageId
	return out, nil
}

func entryOf(i int, id string, in *outgoing) Entry {
	e := Entry{Index: i, ID: id, Group: in.MessageGroupId, DedupID: in.MessageDeduplicationId}
	if in.MessageBody != nil {
		e.Body = *in.MessageBody
	}
	if in.DelaySeconds != nil {
		e.Delay = *in.DelaySeconds
	}
	return e
}

func (s *Server) sendBatch(c *call, in *sendBatchInput) (any, error) {
	ids := make([]string, len(in.Entries))
	drafts := make([]draft, len(in.Entries))
	errs := make([]*apiError, len(in.Entries))
	total := 0
	c.Entries = slices.Grow(c.Entries, len(in.Entries))
	for i := range in.Entries {
		e := &in.Entries[i]
		ids[i] = e.Id
		c.Entries = append(c.Entries, entryOf(i, e.Id, &e.outgoing))
		drafts[i], errs[i] = prepare(&e.outgoing)
		total += drafts[i].size()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.note(c)
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(ids); err != nil {
		return nil, err
	}
	if total > maxMessageBytes {
		return nil, refuse("BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessageBytes, total)
	}
	out := sendBatchOutput{Successful: make([]sendResult, 0, len(drafts))}
	for i := range drafts {
		one, err := sendOutput{}, errs[i]
		if asked := c.failEntry(c.Entries[i]); asked != nil {
			err = asked
		}
		if err == nil {
			one, err = s.accept(q, &drafts[i])
		}
		if err != nil {
			c.Entries[i].Code = err.shape
			out.Failed = append(out.Failed, failed(ids[i], err))
			continue
		}
		c.Entries[i].MessageID = one.MessageId
		out.Successful = append(out.Successful, sendResult{ids[i], one})
	}
	return out, nil
}

func failed(id string, err *apiError) failure {
	return failure{Id: id, SenderFault: !err.server, Code: err.code, Message: err.message}
}

// checkBatch refuses a batch as a whole.
func checkBatch(ids []string) *apiError {
	switch {
	case len(ids) == 0:
		return refuse("EmptyBatchRequest", "There should be at least one entry in the request.")
	case len(ids) > maxBatch:
		return refuse("TooManyEntriesInBatchRequest", "Maximum number of entries per request are %d. You have sent %d.", maxBatch, len(ids))
	}
	for i, id := range ids {
		if !legalEntryID(id) {
			return refuse("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		if slices.Contains(ids[:i], id) {
			return refuse("BatchEntryIdsNotDistinct", "Id %s repeated.", id)
		}
	}
	return nil
}
