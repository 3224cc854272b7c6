package registry

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/longshore-go/longshore"
)

// maxDepth bounds the index of a protobuf message: types are nested so deep at most.
const maxDepth = 64

// Codec is a longshore.Codec. It is safe for concurrent use; look-ups of one schema at
// once are one request.
type Codec struct {
	cfg      Config
	client   *sr.Client
	ids      *cache[identity]
	subjects *cache[string]
	unknown  unknown
	proved   atomic.Bool // a registry answers at the address
}

// Schema is what a message was written with.
type Schema struct {
	ID    int
	GUID  string // of a schema that the message names by it; ID is then what the registry answers, 0 if it does not say
	Kind  Kind
	Text  string // as registered; references are not resolved
	Index []int  // of the message in a protobuf file: {1, 0} is the first type inside of the second; only of messages
}

// name is how errors name a schema.
func (s Schema) name() string {
	return (&identifier{id: s.ID, guid: s.GUID}).String()
}

type schemaKey struct{}

// SchemaOf returns the schema of the message that a codec in Config.Codecs is about to
// read or write.
func SchemaOf(ctx context.Context) (s Schema, ok bool) {
	s, ok = ctx.Value(schemaKey{}).(Schema)
	return s, ok
}

// Decode reads the schema's id or GUID, from the header __value_schema_id or else before the body, gets the schema and lets the codec of its kind read the
// rest. The message itself is not changed. An id that the registry does not know or refuses
// is an error with [longshore.CodeNotFound], also from memory for Config.Unknown; a registry that is away is a [longshore.Release]. A message
// without a body has no schema: see longshore.Tombstone.
func (c *Codec) Decode(ctx context.Context, m *longshore.Message, v any) error {
	if done, err := longshore.DecodeTombstone(m, v); done {
		return err
	}
	x, err := identify(m)
	if err != nil {
		return err
	}
	s, err := c.schemaOf(ctx, &x)
	if err != nil {
		return err
	}
	codec, err := c.of(s)
	if err != nil {
		return err
	}
	var body []byte
	if s.Index, body, err = x.rest(s.Kind); err != nil {
		return err
	}
	inner := *m
	inner.Body = body
	return codec.Decode(context.WithValue(ctx, schemaKey{}, s), &inner, v)
}

// Encode writes v with the latest schema of its subject. The content type is that of
// the kind's codec.
func (c *Codec) Encode(ctx context.Context, v any, m *longshore.Message) error {
	if c.cfg.Subject == nil {
		return &longshore.Error{Code: longshore.CodeConfig, Op: "write with a schema", Err: errors.New("Config.Subject is nil"), Hint: "set it, or use this codec for reading only"}
	}
	s, err := c.latest(ctx, c.cfg.Subject(m))
	if err != nil {
		return err
	}
	codec, err := c.of(s)
	if err != nil {
		return err
	}
	if s.Kind == Protobuf {
		if s.Index, err = indexOf(v); err != nil {
			return err
		}
	}
	inner := *m
	if err := codec.Encode(context.WithValue(ctx, schemaKey{}, s), v, &inner); err != nil {
		return err
	}
	header := sr.ConfluentHeader{}
	framed, err := header.AppendEncode(make([]byte, 0, len(inner.Body)+16), s.ID, s.Index)
	if err != nil {
		return err
	}
	inner.Body = append(framed, inner.Body...)
	if _, stale := inner.Headers.Get(headerSchema); stale { // of a message that was read; it would win over the body
		inner.Headers = inner.Headers.Clone()
		inner.Headers.Del(headerSchema)
	}
	*m = inner
	return nil
}

func (c *Codec) of(s Schema) (longshore.Codec, error) {
	if codec := c.cfg.Codecs[s.Kind]; codec != nil {
		return codec, nil
	}
	return nil, &longshore.Error{Code: longshore.CodeUnsupported, Op: "choose a codec for schema " + s.name(),
		Err: fmt.Errorf("no codec for %.40q", s.Kind), Hint: "add one to Config.Codecs"}
}

// indexOf is the way from the file to the type of v, a message or a pointer to one.
func indexOf(v any) ([]int, error) {
	from, ok := v.(proto.Message)
	if p := reflect.ValueOf(v); !ok && p.Kind() == reflect.Pointer && !p.IsNil() {
		from, ok = p.Elem().Interface().(proto.Message)
	}
	if !ok {
		return nil, fmt.Errorf("a protobuf schema is for generated messages, not for %T", v)
	}
	var index []int
	for d := protoreflect.Descriptor(from.ProtoReflect().Descriptor()); ; d = d.Parent() {
		if _, isMessage := d.(protoreflect.MessageDescriptor); !isMessage {
			break
		}
		index = append(index, d.Index())
	}
	slices.Reverse(index)
	return index, nil
}
