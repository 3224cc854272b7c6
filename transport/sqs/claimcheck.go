package sqs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/sqs/internal/codec"
)

// ClaimCheck is a store for bodies that are too large for SQS, typically S3. What
// is published is the pointer that Amazon's extended client library for Java
// writes, so that it reads our messages and we read its.
//
// Methods are called concurrently and must return when ctx ends.
type ClaimCheck interface {
	// Store keeps a body and says where.
	Store(ctx context.Context, body []byte) (Pointer, error)
	// Load returns what was stored. The body stays: others may read it too.
	Load(ctx context.Context, at Pointer) ([]byte, error)
}

// ClaimCheckUpTo is optional on a [ClaimCheck]: it stops reading behind most bytes and
// returns one more then, so that an object which is larger than its message says takes no
// memory. Without it the size that the message states is checked before the body is
// loaded, and the body's own after it.
type ClaimCheckUpTo interface {
	LoadUpTo(ctx context.Context, at Pointer, most int64) ([]byte, error)
}

// defaultMaxClaim is the zero value of Config.MaxClaim.
const defaultMaxClaim = 64 << 20

// load returns a body of at most so many bytes; large says that it has more.
func load(ctx context.Context, store ClaimCheck, at Pointer, stated, most int64) (body []byte, large bool, err error) {
	if stated > most {
		return nil, true, nil
	}
	if s, ok := store.(ClaimCheckUpTo); ok {
		body, err = s.LoadUpTo(ctx, at, most)
	} else {
		body, err = store.Load(ctx, at)
	}
	return body, int64(len(body)) > most, err
}

// makeRoom waits until a body of n bytes has room in the container's MaxBytes: the pointer
// that was received counts as some hundred bytes, whatever it leads to. No room, or a
// context that ended, is not the handler's failure.
func makeRoom(ctx context.Context, d *longshore.Delivery, n int64) error {
	switch err := d.Reserve(ctx, n); {
	case errors.Is(err, longshore.ErrNoRoom):
		return longshore.Release(err, roomDelay)
	case err != nil:
		return longshore.Release(err, 0)
	}
	return nil
}

// Pointer says where a body is.
type Pointer struct {
	Bucket string `json:"s3BucketName"`
	Key    string `json:"s3Key"`
}

const (
	// loadTimeout bounds the loading of a body; they may be large.
	loadTimeout = time.Minute
	// roomDelay is after how long a message of a batch comes back for whose body there is
	// no room beside those of the others.
	roomDelay = 100 * time.Millisecond
)

// Prepare implements [transport.Preparer]: it puts the body in the place of a
// pointer to it. Without a ClaimCheck the message is rejected, since no handler can
// do its work on a pointer. A store that fails is an error like the handler's. What
// was received stays the pointer: a retry loads again, a dead letter is as small as
// the message was.
func (s *queueSource) Prepare(ctx context.Context, d *longshore.Delivery) error {
	received := d.Received()
	if len(received.Body) == 0 || received.Body[0] != '[' || !slices.ContainsFunc(received.Headers, codec.MarksPointer) {
		return nil
	}
	at, ok := codec.ReadPointer(received.Body)
	if !ok {
		return nil
	}
	failure := &longshore.Error{Source: s.ref.name, Op: fmt.Sprintf("load the body of message %s of %s, which is %q in %q",
		longshore.Identity(d), s.title(), at.Key, at.Bucket)}
	store := s.b.cfg.ClaimCheck
	if store == nil {
		failure.Code, failure.Err = longshore.CodeUndecodable, errors.New("no ClaimCheck is configured, so the body cannot be had")
		failure.Hint = "set sqs.Config.ClaimCheck to read what Amazon's extended client sends, and put the message back from its dead-letter destination"
		return longshore.Reject(failure)
	}
	most := cmp.Or(max(s.b.cfg.MaxClaim, 0), defaultMaxClaim)
	stated := codec.StatedSize(received.Headers)
	if stated <= most {
		if err := makeRoom(ctx, d, cmp.Or(max(stated, 0), most)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	body, large, err := load(ctx, store, Pointer(at), stated, most)
	if large {
		failure.Code, failure.Err = longshore.CodeTooLarge, fmt.Errorf("it has more than %d bytes", most)
		failure.Hint = "raise sqs.Config.MaxClaim, and put the message back from its dead-letter destination"
		return longshore.Reject(failure)
	}
	if err != nil {
		failure.Code, failure.Err, failure.Hint = longshore.CodeUnreachable, err, "see that the store works and still has it"
		return failure
	}
	m := *received
	m.Body = body
	m.Headers = codec.WithoutMarks(m.Headers)
	d.Replace(m)
	return nil
}
