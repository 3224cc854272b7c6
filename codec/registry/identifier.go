package registry

import (
	"encoding/hex"
	"errors"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/longshore-go/longshore"
)

// headerSchema is where serializers write the schema of the body that leave the body as it
// is: HeaderSchemaIdSerializer in the client libraries of Confluent.
const headerSchema = "__value_schema_id"

// The first byte says what follows: four bytes of id, or sixteen of a GUID. For protobuf the
// index of the message comes after either.
const (
	byID   = 0
	byGUID = 1
)

// identifier names a message's schema.
type identifier struct {
	id   int
	guid string // in place of id; "" for none
	// index is the undecoded index of a protobuf message, with the body after it, unless
	// the schema is named in a header.
	index []byte
	body  []byte // without a name of the schema before it; nil: it comes after index
}

// identify reads the header of a message, or where there is none the beginning of its body.
func identify(m *longshore.Message) (identifier, error) {
	var raw []byte
	for _, h := range slices.Backward(m.Headers) { // as the other libraries, the last one
		if h.Name != headerSchema {
			continue
		}
		switch v := h.Value.(type) {
		case []byte:
			raw = v
		case string:
			raw = []byte(v)
		}
		x, err := split(raw)
		if err != nil {
			return x, &longshore.Error{Code: longshore.CodeUndecodable, Op: "read the schema id in the header " + headerSchema, Err: err,
				Hint: "the header is of another program: choose another codec for these messages"}
		}
		x.body = m.Body
		return x, nil
	}
	x, err := split(m.Body)
	if err != nil {
		return x, &longshore.Error{Code: longshore.CodeUndecodable, Op: "read the schema id",
			Err:  errors.New("no header " + headerSchema + ", and the body does not begin with a zero byte and four bytes of id, or a one and sixteen of a GUID"),
			Hint: "the producer does not use a schema registry: choose another codec for its messages"}
	}
	return x, nil
}

// split reads an identifier and leaves what follows it in index.
func split(raw []byte) (identifier, error) {
	switch {
	case len(raw) >= 17 && raw[0] == byGUID:
		g := hex.EncodeToString(raw[1:17])
		return identifier{guid: g[:8] + "-" + g[8:12] + "-" + g[12:16] + "-" + g[16:20] + "-" + g[20:], index: raw[17:]}, nil
	case len(raw) >= 5 && raw[0] == byID:
		id, rest, err := (*sr.ConfluentHeader)(nil).DecodeID(raw)
		return identifier{id: id, index: rest}, err
	}
	return identifier{}, errors.New("it is neither a zero byte and four bytes of id, nor a one and sixteen of a GUID")
}

// rest is the body that a codec reads, and for protobuf the index of the message.
func (x *identifier) rest(kind Kind) (index []int, body []byte, err error) {
	after := x.index
	if kind == Protobuf {
		if index, after, err = (*sr.ConfluentHeader)(nil).DecodeIndex(x.index, maxDepth); err != nil || slices.Min(index) < 0 {
			return nil, nil, &longshore.Error{Code: longshore.CodeUndecodable, Op: "read the message index after the schema's " + x.String(),
				Err: errors.New("it is cut off, negative, or longer than types are nested")}
		}
	}
	if x.body != nil {
		return index, x.body, nil
	}
	return index, after, nil
}

// String is for example "id 7" or "GUID 11111111-2222-4333-8444-555555555555".
func (x *identifier) String() string {
	if x.guid != "" {
		return "GUID " + x.guid
	}
	return "id " + strconv.Itoa(x.id)
}
