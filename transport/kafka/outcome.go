package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// outcome marks the errors of records that may have been written. err is of a Publish that
// gave its records to the client, which sends them at any time from then on.
func outcome(topic string, err error) error {
	var partial *transport.PartialError
	if !errors.As(err, &partial) {
		return marked(topic, err)
	}
	for i, e := range partial.Failed {
		partial.Failed[i] = marked(topic, e)
	}
	return err
}

// marked says "may have been sent" where an error leaves that open, so that no caller takes it
// for a refusal and sends under another identity.
func marked(topic string, err error) error {
	if err == nil || !unknown(err) {
		return err
	}
	return transport.MaybeSent(fmt.Sprintf("a record to kafka topic %q", topic), topic, err)
}

// unknown reports whether err leaves open if the record was written: no answer came, or one
// that says so.
func unknown(err error) bool {
	switch {
	case errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, kgo.ErrRecordRetries), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, kerr.RequestTimedOut), errors.Is(err, kerr.NotEnoughReplicasAfterAppend):
		return true
	}
	return errors.Is(err, longshore.CodeTimeout) || errors.Is(err, longshore.CodeConnLost)
}
