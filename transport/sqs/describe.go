package sqs

import "context"

// Settings are the queue's attributes under SQS's own names, for tools that examine
// one. Errors: those of Open.
func (s *queueSource) Settings(ctx context.Context) (map[string]string, error) {
	p, err := s.place()
	if err != nil {
		return nil, err
	}
	api, err := s.b.acquire(p)
	if err != nil {
		return nil, err
	}
	l := &queueHandle{b: s.b, api: api}
	defer l.close()
	var attrs map[string]string
	if l.url, err = l.find(ctx, s.ref); err == nil {
		attrs, err = l.attributes(ctx, l.url, "All")
	}
	if err != nil {
		return nil, s.failure("read the attributes of "+s.title(), err)
	}
	return attrs, nil
}
