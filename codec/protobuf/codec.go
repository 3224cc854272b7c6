package protobuf

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore"
)

// ContentType is what [Codec] writes.
const ContentType = "application/x-protobuf"

// Codec reads and writes generated messages. It does not look at the content type when
// decoding. It is safe for concurrent use.
type Codec struct {
	// Deterministic writes equal messages as equal bytes, as long as the program stays
	// the same: for those who compare or hash bodies.
	Deterministic bool
	// DiscardUnknown drops fields that the Go type does not have; otherwise they are
	// kept, and written again with the message.
	DiscardUnknown bool
}

// Types is a [Codec] under the names that are in use for protobuf, for
// longshore.ContentTypes. The map is the caller's.
func Types() map[string]longshore.Codec {
	return map[string]longshore.Codec{ContentType: Codec{}, "application/protobuf": Codec{}, "application/vnd.google.protobuf": Codec{}}
}

// Decode reads m into v: a message (*shop.Order), or a pointer to one (**shop.Order, of
// which a nil message is made first). An empty body is a message in which nothing is
// set; no body at all is a longshore.Tombstone, which sets a pointer to a message to nil.
func (c Codec) Decode(_ context.Context, m *longshore.Message, v any) error {
	if err := decodable(v); err != nil {
		return err
	}
	if done, err := longshore.DecodeTombstone(m, v); done {
		return err
	}
	into, err := message(v)
	if err != nil {
		return err
	}
	return proto.UnmarshalOptions{DiscardUnknown: c.DiscardUnknown}.Unmarshal(m.Body, into)
}

// Encode writes v, a message or a pointer to one, and sets the content type.
func (c Codec) Encode(_ context.Context, v any, m *longshore.Message) error {
	from, ok := v.(proto.Message)
	if p := reflect.ValueOf(v); !ok && p.Kind() == reflect.Pointer && !p.IsNil() {
		from, ok = p.Elem().Interface().(proto.Message)
	}
	switch {
	case !ok:
		return fmt.Errorf("protobuf.Codec encodes generated messages, not %T", v)
	case !from.ProtoReflect().IsValid():
		return errors.New("the message is nil")
	}
	b, err := proto.MarshalOptions{Deterministic: c.Deterministic}.Marshal(from)
	if err != nil {
		return err
	}
	m.Body, m.ContentType = b, ContentType
	return nil
}

// decodable says whether message can fill v.
func decodable(v any) error {
	if into, ok := v.(proto.Message); ok && into.ProtoReflect().IsValid() {
		return nil
	}
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() && p.Elem().Kind() == reflect.Pointer {
		if _, ok := p.Elem().Interface().(proto.Message); ok {
			return nil
		}
	}
	return fmt.Errorf("protobuf.Codec decodes generated messages, not %T", v)
}

// message is what Decode fills. A typed handler of *shop.Order has a variable of that
// type, and gives its address.
func message(v any) (proto.Message, error) {
	if into, ok := v.(proto.Message); ok && into.ProtoReflect().IsValid() {
		return into, nil
	}
	if err := decodable(v); err != nil {
		return nil, err
	}
	target := reflect.ValueOf(v).Elem()
	if target.IsNil() {
		target.Set(reflect.New(target.Type().Elem()))
	}
	into, _ := target.Interface().(proto.Message) // it was one before it was set
	return into, nil
}
