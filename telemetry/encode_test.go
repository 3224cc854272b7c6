package telemetry_test

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// encoder writes a set as "key=value key=value".
type encoder struct{}

func (encoder) ID() attribute.EncoderID { return attribute.NewEncoderID() }

func (encoder) Encode(it attribute.Iterator) string {
	var out []string
	for it.Next() {
		kv := it.Attribute()
		out = append(out, string(kv.Key)+"="+kv.Value.String())
	}
	return strings.Join(out, " ")
}

type set struct{ text string }

func (s set) String() string { return s.text }
