package spring

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
)

// HeaderBatchFormat marks a message that spring-amqp's BatchingRabbitTemplate made of
// many; its one format is [LengthHeader4].
const (
	HeaderBatchFormat = "springBatchFormat"
	LengthHeader4     = "lengthHeader4"
)

// Batches takes messages apart that a BatchingRabbitTemplate put together: the handler
// is called for each part in turn, with the headers of the whole, and the message is
// settled once, by what came of all. At the first part that fails the rest is left, and
// a retry begins with the first part again, so handlers must bear parts that they have
// had; a dead letter is the whole message. With manual settling a handler would settle
// all parts with the first: Start refuses that. All parts have the id of the whole, so
// what remembers ids (Dedupe, mutex) must be outside: container.New refuses it inside.
//
// A batch that cannot be taken apart, and a format that is not known, are rejected as
// [longshore.CodeUndecodable]. Other messages pass untouched.
func Batches() longshore.Middleware { return batches{} }

type batches struct{}

func (batches) Name() string { return "spring-batches" }

// Check refuses manual settling.
func (batches) Check(_ context.Context, f longshore.Facts) error {
	if !f.Manual {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeConfig, Op: "middleware spring-batches",
		Err: errors.New("settling is manual, and the first part would settle the whole message"), Hint: "let the handler's result settle"}
}

func (batches) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		format, ok := d.Headers.Get(HeaderBatchFormat)
		if !ok {
			return next.Handle(ctx, d)
		}
		whole := d.Message
		parts, err := split(whole.Body)
		if name := whole.Headers.String(HeaderBatchFormat); name != LengthHeader4 {
			err = fmt.Errorf("the format %.40q is not known", fmt.Sprint(format))
		}
		if err != nil {
			return longshore.Reject(&longshore.Error{Code: longshore.CodeUndecodable, Op: "take a batch of Spring apart", Source: d.Origin.Source(), Err: err})
		}
		defer d.Replace(whole) //nolint:contextcheck // counting a size waits for nothing
		part := whole
		part.Headers.Del(HeaderBatchFormat)
		part.Headers.Del("amqp_batchSize")
		for i, body := range parts {
			part.Body = body
			d.Replace(part) //nolint:contextcheck // counting a size waits for nothing
			if err := next.Handle(ctx, d); err != nil {
				return fmt.Errorf("part %d of %d: %w", i+1, len(parts), err)
			}
		}
		return nil
	})
}

// split reads parts that each follow their length in four bytes.
func split(b []byte) ([][]byte, error) {
	var parts [][]byte
	for at := 0; at < len(b); {
		if len(b)-at < 4 {
			return nil, fmt.Errorf("%d bytes are left where the length of part %d should be", len(b)-at, len(parts)+1)
		}
		n := int64(binary.BigEndian.Uint32(b[at:]))
		at += 4
		if n > int64(len(b)-at) {
			return nil, fmt.Errorf("part %d says it has %d bytes, and %d are left", len(parts)+1, n, len(b)-at)
		}
		end := at + int(n)
		parts = append(parts, b[at:end:end])
		at = end
	}
	if len(parts) == 0 {
		return nil, errors.New("it holds no part")
	}
	return parts, nil
}
