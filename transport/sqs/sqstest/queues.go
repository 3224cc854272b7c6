package sqstest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// quiet is how long SQS refuses to purge a queue again, or to create one of the
// name of one that was deleted.
const quiet = time.Minute

// find returns the queue of a URL. The caller holds the lock.
func (s *Server) find(queueURL string) (*queue, *apiError) {
	if queueURL == "" {
		return nil, missing("QueueUrl")
	}
	q := s.queues[nameOf(queueURL)]
	if q == nil {
		return nil, refuse("QueueDoesNotExist", "The specified queue does not exist.")
	}
	return q, nil
}

func (s *Server) all() []*queue { return slices.Collect(maps.Values(s.queues)) }

func (s *Server) urlOf(c *call, name string) string {
	return c.base + "/" + s.cfg.AccountID + "/" + name
}

func (s *Server) arnOf(name string) string {
	return "arn:aws:sqs:" + s.cfg.Region + ":" + s.cfg.AccountID + ":" + name
}

func (s *Server) createQueue(c *call, in *createQueueInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.create(in.QueueName, in.Attributes, in.Tags); err != nil {
		return nil, err
	}
	return queueURLOutput{s.urlOf(c, in.QueueName)}, nil
}

// create makes a queue, or finds that it exists with the attributes given. The
// caller holds the lock.
func (s *Server) create(name string, attrs, tags map[string]string) *apiError {
	if !legalQueueName(name) {
		return refuse("InvalidParameterValue", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length, with .fifo at the end of a FIFO queue's name.")
	}
	fifo := strings.HasSuffix(name, ".fifo")
	if fifo != (attrs["FifoQueue"] == "true") {
		return refuse("InvalidParameterValue", "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length, with FifoQueue = true.")
	}
	full := defaultAttributes(fifo)
	for k, v := range attrs {
		if k == "FifoQueue" && !fifo {
			return refuse("InvalidAttributeName", "Unknown Attribute FifoQueue.")
		}
		if err := checkSetting(k, v, fifo); err != nil {
			return err
		}
		full[k] = v
	}
	if q := s.queues[name]; q != nil {
		for k, v := range attrs {
			if q.attrs[k] != v {
				return refuse("QueueNameExists", "A queue already exists with the same name and a different value for attribute %s", k)
			}
		}
		return nil
	}
	if at, ok := s.deleted[name]; ok && s.clock().Sub(at) < quiet {
		return refuse("QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can create another with the same name.")
	}
	if err := checkTogether(full); err != nil {
		return err
	}
	if err := s.checkRedrive(name, full["RedrivePolicy"]); err != nil {
		return err
	}
	q := newQueue(name, s.arnOf(name), full, s.clock())
	maps.Copy(q.tags, tags)
	s.queues[name] = q
	return nil
}

func (s *Server) getQueueURL(c *call, in *queueURLInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.QueueName == "" {
		return nil, missing("QueueName")
	}
	if s.queues[in.QueueName] == nil || in.QueueOwnerAWSAccountId != "" && in.QueueOwnerAWSAccountId != s.cfg.AccountID {
		return nil, refuse("QueueDoesNotExist", "The specified queue does not exist.")
	}
	return queueURLOutput{s.urlOf(c, in.QueueName)}, nil
}

func (s *Server) listQueues(c *call, in *listQueuesInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.queues {
		if strings.HasPrefix(name, in.QueueNamePrefix) {
			names = append(names, name)
		}
	}
	page, next, err := paged(names, in.NextToken, in.MaxResults)
	if err != nil {
		return nil, err
	}
	out := listQueuesOutput{NextToken: next}
	for _, name := range page {
		out.QueueUrls = append(out.QueueUrls, s.urlOf(c, name))
	}
	return out, nil
}

// paged sorts names and cuts out a page. The token is the last name before it.
func paged(names []string, token string, size int) (page []string, next string, err *apiError) {
	if size < 0 || size > 1000 {
		return nil, "", badValue(size, "MaxResults", "Must be between 1 and 1000, if provided.")
	}
	slices.Sort(names)
	if token != "" {
		i, found := slices.BinarySearch(names, token)
		if found {
			i++
		}
		names = names[i:]
	}
	full := size
	if full == 0 {
		full = 1000
	}
	if len(names) <= full {
		return names, "", nil
	}
	if size == 0 { // SQS pages only if asked to
		return names[:full], "", nil
	}
	return names[:full], names[full-1], nil
}

func (s *Server) deleteQueue(_ *call, in *queueInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	q.clear()
	q.removed = true
	delete(s.queues, q.name)
	s.deleted[q.name] = s.clock()
	q.wake()
	return empty{}, nil
}

func (s *Server) purgeQueue(_ *call, in *queueInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if !q.purged.IsZero() && s.clock().Sub(q.purged) < quiet {
		return nil, refuse("PurgeQueueInProgress", "Only one PurgeQueue operation on %s is allowed every 60 seconds.", q.name)
	}
	q.clear()
	q.purged = s.clock()
	return empty{}, nil
}

func (s *Server) getAttributes(_ *call, in *attributesInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	q.refresh(s.clock())
	all := maps.Clone(q.attrs)
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	for name, v := range map[string]string{
		"QueueArn":                              q.arn,
		"CreatedTimestamp":                      strconv.FormatInt(q.created.Unix(), 10),
		"LastModifiedTimestamp":                 strconv.FormatInt(q.modified.Unix(), 10),
		"ApproximateNumberOfMessages":           strconv.Itoa(q.count[visible]),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(q.count[inFlight]),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(q.count[delayed]),
	} {
		all[name] = v
	}
	out := attributesOutput{Attributes: map[string]string{}}
	both, fifoOnly := settableNames()
	for _, name := range in.AttributeNames {
		if name == "All" {
			return attributesOutput{all}, nil
		}
		if !slices.Contains(slices.Concat(both, fifoOnly, readableNames()), name) {
			return nil, refuse("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
		if v, ok := all[name]; ok {
			out.Attributes[name] = v
		}
	}
	return out, nil
}

func (s *Server) setAttributes(_ *call, in *setAttributesInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	next := maps.Clone(q.attrs)
	for k, v := range in.Attributes {
		if k == "FifoQueue" {
			return nil, refuse("InvalidAttributeName", "Unknown Attribute FifoQueue.")
		}
		if err := checkSetting(k, v, q.set.fifo); err != nil {
			return nil, err
		}
		next[k] = v
	}
	if err := checkTogether(next); err != nil {
		return nil, err
	}
	// Only what is given: the target of an older policy may be gone by now.
	if err := s.checkRedrive(q.name, in.Attributes["RedrivePolicy"]); err != nil {
		return nil, err
	}
	q.attrs, q.set, q.modified = next, read(next), s.clock()
	q.wake()
	return empty{}, nil
}

func (s *Server) tagQueue(_ *call, in *tagInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	maps.Copy(q.tags, in.Tags)
	return empty{}, nil
}

func (s *Server) untagQueue(_ *call, in *untagInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	for _, k := range in.TagKeys {
		delete(q.tags, k)
	}
	return empty{}, nil
}

func (s *Server) listTags(_ *call, in *queueInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return tagsOutput{maps.Clone(q.tags)}, nil
}
