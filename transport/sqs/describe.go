package sqs

import (
	"context"
	"strconv"

	"github.com/longshore-go/longshore/transport"
)

// Vocabulary is that of Settings.
func (s *queueSource) Vocabulary() transport.Vocabulary { return transport.VocabularySQS }

// Depth is what SQS estimates. Errors: those of Open.
func (s *queueSource) Depth(ctx context.Context) (transport.Depth, error) {
	counts, err := s.Settings(ctx)
	if err != nil {
		return transport.Depth{}, err
	}
	ready, err := strconv.Atoi(counts["ApproximateNumberOfMessages"])
	if err != nil {
		return transport.Depth{}, s.failure("count the messages of "+s.title(), err)
	}
	hidden, _ := strconv.Atoi(counts["ApproximateNumberOfMessagesNotVisible"]) // some emulators lack it
	return transport.Depth{Ready: ready, Hidden: hidden, Approximate: true}, nil
}

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
