package longshore

import (
	"errors"
	"fmt"
	"reflect"
)

// Tombstone says what a typed handler does with a message whose body is nil: the mark of
// a deleted key on a compacted topic, or what Debezium writes after a delete. An empty
// body is another thing and goes to the codec. Handlers of pointers (Typed[*Order])
// receive nil, handlers of []byte a nil body; this is for all others, whose zero value
// would look like a message in which nothing is set.
//
// It is an option of [Typed].
type Tombstone uint8

const (
	// RejectTombstone dead-letters the message with [CodeTombstone]. The default.
	RejectTombstone Tombstone = iota
	// SkipTombstone acks the message; the handler does not run.
	SkipTombstone
	// ZeroTombstone gives the handler the zero value. It distinguishes a tombstone by a
	// d.Body of nil.
	ZeroTombstone
)

// TypedOption is an option of [Typed]: a [Tombstone].
type TypedOption interface{ typed(o *typedOptions) }

type typedOptions struct{ tombstone Tombstone }

func (t Tombstone) typed(o *typedOptions) { o.tombstone = t }

// errTombstone is the text that a dead letter shows.
var errTombstone = &Error{Code: CodeTombstone, Err: errors.New("the message is a tombstone: it has no body, which marks a deleted key"),
	Hint: "take a pointer in the handler's type, which receives nil, or choose longshore.SkipTombstone or ZeroTombstone"}

// DecodeTombstone is for codecs, as the first thing of Decode: it says whether m is a
// tombstone and has been decoded into v. A pointer to a pointer is set to nil and a pointer
// to []byte to nil bytes; any other v is an error with [CodeTombstone], because it would keep
// the value of a message that is there.
func DecodeTombstone(m *Message, v any) (done bool, err error) {
	if m.Body != nil {
		return false, nil
	}
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() || !takesNil(p.Type().Elem()) {
		return true, errTombstone
	}
	p.Elem().SetZero()
	return true, nil
}

// takesNil: nil says of the type that there is nothing, not that it is empty. A nil
// slice of another kind, or a nil map, would pass for an empty one.
func takesNil(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// decodeTyped is what a typed handler does before it runs: v is decoded, or the verdict
// is given.
func decodeTyped(o typedOptions, m *Message, v any) (done, skip bool, err error) {
	if m.Body != nil {
		return false, false, nil
	}
	done, err = DecodeTombstone(m, v)
	if err == nil {
		return done, false, nil
	}
	switch o.tombstone {
	case SkipTombstone:
		return true, true, nil
	case ZeroTombstone:
		return true, false, nil
	case RejectTombstone:
	}
	return true, false, err
}

// tombstone is the error of a rejected one.
func tombstoned(d *Delivery, as string) error {
	return &Error{Code: CodeTombstone, Op: fmt.Sprintf("decode %q message %.64q as %s", d.Origin.Source(), Identity(d), as),
		Source: d.Origin.Source(), Err: errTombstone.Err, Hint: errTombstone.Hint}
}
