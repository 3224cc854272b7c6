package codec

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/longshore-go/longshore"
)

// Pointer is the place of a body that is kept outside of SQS.
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

// ReadPointer reads a pointer; false if the body is none.
func ReadPointer(body []byte) (Pointer, bool) {
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

// StatedSize is what the message says of its body; 0 if it says nothing that can be read.
func StatedSize(headers longshore.Headers) int64 {
	for _, name := range []string{sizeAttribute, oldSize} {
		if v, ok := headers.Get(name); ok {
			n, _ := strconv.ParseInt(fmt.Sprint(v), 10, 64)
			return n
		}
	}
	return 0
}

// MarksPointer says whether a header is the attribute that distinguishes a pointer from a
// body that looks like one.
func MarksPointer(h longshore.Header) bool { return h.Name == sizeAttribute || h.Name == oldSize }

// WithoutMarks are the headers of a message whose body was loaded: the pointer's attributes
// have gone, and so has what is kept of their types.
func WithoutMarks(headers longshore.Headers) longshore.Headers {
	kinds := typesOf(headers)
	delete(kinds, sizeAttribute)
	delete(kinds, oldSize)
	left := make(longshore.Headers, 0, len(headers))
	for _, h := range headers {
		switch {
		case MarksPointer(h):
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
