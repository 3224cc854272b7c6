package longshore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
)

// ContentTypes is a codec that chooses among codecs by the content type of the
// message, so that one typed handler reads what several producers write:
//
//	codec := longshore.ContentTypes{
//		Types:   map[string]longshore.Codec{"application/json": longshore.JSON{}, "application/x-protobuf": proto},
//		Default: longshore.JSON{}, // for messages without a content type
//	}
//
// Names are media types in lower case, without parameters. A type is looked up as it
// is, then by its structured suffix ("application/vnd.shop.order+json" is
// application/json), then as "type/*". Character sets other than UTF-8 are refused: no
// codec here knows them.
//
// Where a message has no content type, the header of another producer that means it
// stands in: "content-type" or "contentType" (Spring), in any case.
type ContentTypes struct {
	Types map[string]Codec
	// Default reads messages without a content type or such a header, and writes those that name none;
	// nil: both are errors. It does not read types that are not in Types.
	Default Codec
}

// Decode chooses by m.ContentType, or by the header that stands in for it.
func (c ContentTypes) Decode(ctx context.Context, m *Message, v any) error {
	if done, err := DecodeTombstone(m, v); done {
		return err // whatever content type it has
	}
	codec, err := c.choose(contentTypeOf(m))
	if err != nil {
		return err
	}
	return codec.Decode(ctx, m, v)
}

// Encode chooses by m.ContentType as it was set before, which stays: a codec's own name
// for what it writes does not replace a more exact one.
func (c ContentTypes) Encode(ctx context.Context, v any, m *Message) error {
	wanted := m.ContentType
	codec, err := c.choose(wanted)
	if err != nil {
		return err
	}
	if err := codec.Encode(ctx, v, m); err != nil {
		return err
	}
	if wanted != "" {
		m.ContentType = wanted
	}
	return nil
}

// contentTypeOf is the property, or what a producer wrote into a header that its broker's
// transport does not know as the property. Spring writes text as JSON, in quotes, if it is
// told to keep types.
func contentTypeOf(m *Message) string {
	if strings.TrimSpace(m.ContentType) != "" {
		return m.ContentType
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		if !strings.EqualFold(h.Name, "content-type") && !strings.EqualFold(h.Name, "contentType") {
			continue
		}
		text, ok := h.Value.(string)
		if b, isBytes := h.Value.([]byte); isBytes {
			text, ok = string(b), true
		}
		text = strings.TrimSpace(text)
		if inner, quoted := strings.CutPrefix(text, `"`); quoted && strings.HasSuffix(inner, `"`) {
			text = strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `\"`, `"`)
		}
		if ok && text != "" {
			return text
		}
	}
	return ""
}

func (c ContentTypes) choose(contentType string) (Codec, error) {
	if strings.TrimSpace(contentType) == "" {
		if c.Default == nil {
			return nil, errors.New("the message has no content type, and no Default is set")
		}
		return c.Default, nil
	}
	name, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("content type %.64q cannot be read", contentType)
	}
	switch charset := strings.ToLower(params["charset"]); charset {
	case "", "utf-8", "utf8", "us-ascii":
	default:
		return nil, fmt.Errorf("character set %.64q of the content type is not UTF-8", charset)
	}
	if codec := c.named(name); codec != nil {
		return codec, nil
	}
	return nil, fmt.Errorf("content type %.64q is none of %s", name, strings.Join(slices.Sorted(maps.Keys(c.Types)), ", "))
}

func (c ContentTypes) named(name string) Codec {
	if codec := c.Types[name]; codec != nil {
		return codec
	}
	kind, sub, _ := strings.Cut(name, "/")
	if plus := strings.LastIndexByte(sub, '+'); plus >= 0 {
		if codec := c.Types["application/"+sub[plus+1:]]; codec != nil {
			return codec
		}
	}
	return c.Types[kind+"/*"]
}
