package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
)

// largeRecords sends what the ordinary client refuses for its size, or the broker refused
// by itself: each record in a batch of its own, compressed, so that the topic's limit is
// the only one. What came in under a limit can go out under it: 1,000,012 bytes are this
// client's limit, topics have 1,048,588 by default and often more, and their limit is for
// what is stored, so a record of any size may have come in compressed.
type largeRecords struct {
	opts []kgo.Opt // of the ordinary client

	mu     sync.Mutex  // guards the client and its end
	cl     *kgo.Client // made when it is first needed
	closed bool        // no client is made any more
}

// maxLarge is what a record may have before compression: a request may have 100 MiB.
const maxLarge = 100<<20 - 1<<16

// client returns the one for large records.
func (l *largeRecords) client() (*kgo.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, longshore.ErrClosed
	}
	if l.cl == nil {
		// Gzip, since every client reads it. One record at a time is one in a batch.
		cl, err := kgo.NewClient(append(slices.Clone(l.opts), kgo.ProducerBatchMaxBytes(maxLarge), kgo.MaxBufferedRecords(1),
			kgo.ProducerBatchCompression(kgo.GzipCompression()))...)
		if err != nil {
			return nil, badOptions(err)
		}
		l.cl = cl
	}
	return l.cl, nil
}

// close ends the client, if there is one.
func (l *largeRecords) close() {
	l.mu.Lock()
	cl := l.cl
	l.closed, l.cl = true, nil
	l.mu.Unlock()
	if cl != nil {
		cl.Close()
	}
}

// large tries again what was refused for its size, and where that is in vain too without
// the headers that only we have added.
func (b *batch) large(ctx context.Context, l *largeRecords, msgs []*longshore.Message) {
	if l == nil {
		return
	}
	for i, r := range b.recs {
		if r == nil || !errors.Is(b.errs[i], kerr.MessageTooLarge) {
			continue
		}
		cl, err := l.client()
		if err != nil {
			return // with the first error
		}
		err = b.sendLarge(ctx, cl, r, r.Headers)
		if bare, less := withoutOurs(r.Headers, msgs[i]); errors.Is(err, kerr.MessageTooLarge) && less {
			err = b.sendLarge(ctx, cl, r, bare)
		}
		switch {
		case err == nil:
			delete(b.errs, i)
		case errors.Is(err, kerr.MessageTooLarge):
			b.errs[i] = &longshore.Error{Code: longshore.CodeTooLarge, Op: fmt.Sprintf("publish to kafka topic %q", b.topic), Source: b.topic,
				Err:  fmt.Errorf("a record of %d bytes is more than the topic takes%s, also compressed: %w", weight(r)-256, topicLimit(ctx, cl, b.topic), err),
				Hint: "raise max.message.bytes of the topic"}
		default:
			b.errs[i] = err
		}
	}
}

// sendLarge writes one record within the time of a call, with the headers that are given.
func (b *batch) sendLarge(ctx context.Context, cl *kgo.Client, r *kgo.Record, headers []kgo.RecordHeader) error {
	ctx, cancel := context.WithTimeout(ctx, or(b.after, defaultTimeout))
	defer cancel()
	again := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: headers, Timestamp: r.Timestamp}
	return cl.ProduceSync(ctx, again).FirstErr()
}

// withoutOurs leaves out what only we have added: the identity of a message that had
// none, and the time that the record's timestamp cannot carry.
func withoutOurs(headers []kgo.RecordHeader, m *longshore.Message) (bare []kgo.RecordHeader, less bool) {
	named := m.ID != "" || m.Headers.Has(longshore.HeaderID)
	bare = slices.DeleteFunc(slices.Clone(headers), func(h kgo.RecordHeader) bool {
		return h.Key == longshore.HeaderID && !named || h.Key == headerProps+"timestamp"
	})
	return bare, len(bare) < len(headers)
}

// topicLimit says what the topic takes, where we may read that.
func topicLimit(ctx context.Context, cl *kgo.Client, topic string) string {
	all, err := kadm.NewClient(cl).DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return ""
	}
	for _, t := range all {
		for _, c := range t.Configs {
			if c.Key == "max.message.bytes" && c.Value != nil {
				return " (max.message.bytes " + *c.Value + ")"
			}
		}
	}
	return ""
}
