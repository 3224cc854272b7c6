package sqs

import (
	"context"
	"encoding/json"
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

// Pointer says where a body is.
type Pointer struct {
	Bucket string `json:"s3BucketName"`
	Key    string `json:"s3Key"`
}

// HeaderUnclaimed is set on a message whose body is in a store that could not be
// asked: no Config.ClaimCheck. Its value says where the body is, its body is the
// pointer.
const HeaderUnclaimed = "longshore-unclaimed"

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
