package sqs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-go/longshore"
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

// Pointer says where a body is.
type Pointer struct {
	Bucket string `json:"s3BucketName"`
	Key    string `json:"s3Key"`
}

// The class names that the Java library has used, and its attributes.
const (
	pointerClass    = "software.amazon.payloadoffloading.PayloadS3Pointer"
	oldPointerClass = "com.amazon.sqs.javamessaging.MessageS3Pointer"
	sizeAttribute   = "ExtendedPayloadSize"
	oldSize         = "SQSLargePayloadSize"
)

// encode writes the pointer as the Java library does: ["class", {…}].
func (p Pointer) encode() string {
	text, err := json.Marshal([]any{pointerClass, p})
	if err != nil {
		return "" // two texts
	}
	return string(text)
}

// readPointer reads a pointer; false if the body is none.
func readPointer(body []byte) (Pointer, bool) {
	var parts []json.RawMessage
	if len(body) < 2 || body[0] != '[' || json.Unmarshal(body, &parts) != nil || len(parts) != 2 {
		return Pointer{}, false
	}
	var class string
	var p Pointer
	if json.Unmarshal(parts[0], &class) != nil || class != pointerClass && class != oldPointerClass {
		return Pointer{}, false
	}
	return p, json.Unmarshal(parts[1], &p) == nil && p.Bucket != "" && p.Key != ""
}

// loadTimeout bounds the loading of a body; they may be large.
const loadTimeout = time.Minute

// Prepare implements [transport.Preparer]: it puts the body in the place of a
// pointer to it. Without a ClaimCheck the message is rejected, since no handler can
// do its work on a pointer. A store that fails is an error like the handler's. What
// was received stays the pointer: a retry loads again, a dead letter is as small as
// the message was.
func (s *queueSource) Prepare(ctx context.Context, d *longshore.Delivery) error {
	received := d.Received()
	if len(received.Body) == 0 || received.Body[0] != '[' || !slices.ContainsFunc(received.Headers, marksPointer) {
		return nil
	}
	at, ok := readPointer(received.Body)
	if !ok {
		return nil
	}
	failure := &longshore.Error{Source: s.ref.name, Op: fmt.Sprintf("load the body of message %s of %s, which is %q in %q",
		longshore.Identity(d), s.title(), at.Key, at.Bucket)}
	store := s.b.cfg.ClaimCheck
	if store == nil {
		failure.Code, failure.Err = longshore.CodeUndecodable, errors.New("no ClaimCheck is configured, so the body cannot be had")
		failure.Hint = "set sqs.Config.ClaimCheck to read what Amazon's extended client sends, and put the message back from its dead-letter place"
		return longshore.Reject(failure)
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	most := cmp.Or(max(s.b.cfg.MaxClaim, 0), defaultMaxClaim)
	body, large, err := load(ctx, store, at, statedSize(received.Headers), most)
	if large {
		failure.Code, failure.Err = longshore.CodeTooLarge, fmt.Errorf("it has more than %d bytes", most)
		failure.Hint = "raise sqs.Config.MaxClaim, and put the message back from its dead-letter place"
		return longshore.Reject(failure)
	}
	if err != nil {
		failure.Code, failure.Err, failure.Hint = longshore.CodeUnreachable, err, "see that the store works and still has it"
		return failure
	}
	m := *received
	m.Body = body
	m.Headers = withoutMarks(m.Headers)
	d.Replace(m)
	return nil
}

// statedSize is what the message says of its body; 0 if it says nothing that can be read.
func statedSize(headers longshore.Headers) int64 {
	for _, name := range []string{sizeAttribute, oldSize} {
		if v, ok := headers.Get(name); ok {
			n, _ := strconv.ParseInt(fmt.Sprint(v), 10, 64)
			return n
		}
	}
	return 0
}

// marksPointer says whether a header is the attribute that tells a pointer from a
// body that looks like one.
func marksPointer(h longshore.Header) bool { return h.Name == sizeAttribute || h.Name == oldSize }

// withoutMarks are the headers of a message whose body was loaded: the pointer's attributes
// have gone, and so has what is kept of their types.
func withoutMarks(headers longshore.Headers) longshore.Headers {
	kinds := typesOf(headers)
	delete(kinds, sizeAttribute)
	delete(kinds, oldSize)
	left := make(longshore.Headers, 0, len(headers))
	for _, h := range headers {
		switch {
		case marksPointer(h):
			continue
		case h.Name == headerTypes && kinds != nil:
			text, err := json.Marshal(kinds)
			if len(kinds) == 0 || err != nil {
				continue
			}
			h.Value = string(text)
		}
		left = append(left, h)
	}
	if len(left) == 0 {
		return nil
	}
	return left
}
