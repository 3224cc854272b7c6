package longshore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
)

// tagged is a codec that says that it was asked.
type tagged string

func (c tagged) Decode(_ context.Context, _ *longshore.Message, v any) error {
	if s, ok := v.(*string); ok {
		*s = string(c)
	}
	return nil
}

func (c tagged) Encode(_ context.Context, _ any, m *longshore.Message) error {
	m.Body, m.ContentType = []byte(c), "application/"+string(c)
	return nil
}

func TestContentTypeChoosesTheCodec(t *testing.T) {
	codec := longshore.ContentTypes{Default: tagged("default"), Types: map[string]longshore.Codec{
		"application/json": tagged("json"), "application/vnd.shop.v2+json": tagged("v2"), "text/*": tagged("text")}}
	for contentType, want := range map[string]string{
		"":                                   "default",
		"application/json":                   "json",
		"Application/JSON; charset=UTF-8":    "json",
		"application/vnd.shop.order+json":    "json",
		"application/vnd.shop.v2+json":       "v2",
		"text/plain":                         "text",
		"text/plain; charset=iso-8859-1":     `! character set "iso-8859-1"`,
		"application/xml":                    "! application/json, application/vnd.shop.v2+json, text/*",
		"application/json; charset=utf-8; =": "! cannot be read",
	} {
		var got string
		err := codec.Decode(t.Context(), &longshore.Message{Body: []byte("x"), ContentType: contentType}, &got)
		if text, bad := strings.CutPrefix(want, "! "); bad != (err != nil) || bad && !strings.Contains(err.Error(), text) || !bad && got != want {
			t.Errorf("%q: %q, %v; want %q", contentType, got, err, want)
		}
	}
	m := &longshore.Message{ContentType: "application/vnd.shop.order+json"}
	if err := codec.Encode(t.Context(), 1, m); err != nil || string(m.Body) != "json" || m.ContentType != "application/vnd.shop.order+json" {
		t.Errorf("%v, %+v", err, m)
	}
	m = &longshore.Message{}
	if err := codec.Encode(t.Context(), 1, m); err != nil || m.ContentType != "application/default" {
		t.Errorf("%v, %+v", err, m)
	}
	if err := (longshore.ContentTypes{}).Decode(t.Context(), &longshore.Message{Body: []byte("x")}, new(string)); err == nil {
		t.Error("no content type and no default")
	}
}

// A typed handler rejects what no codec reads.
func TestTypedHandlerRejectsAnUnknownContentType(t *testing.T) {
	h := longshore.Typed(longshore.ContentTypes{Types: map[string]longshore.Codec{"application/json": longshore.JSON{}}},
		func(context.Context, int, *longshore.Delivery) error { t.Error("it ran"); return nil })
	d := longshore.NewDelivery(t.Context(), nil, 1)
	d.Message = longshore.Message{ContentType: "application/xml", Body: []byte("<a/>")}
	err := h.Handle(t.Context(), d)
	if v, _ := longshore.VerdictOf(err); v != longshore.VerdictReject || longshore.CodeOf(err) != longshore.CodeUndecodable {
		t.Errorf("%v %v", v, err)
	}
}

// away is a codec that cannot work for now.
type away struct{ longshore.JSON }

func (away) Decode(context.Context, *longshore.Message, any) error {
	return longshore.Release(&longshore.Error{Code: longshore.CodeUnreachable}, 0)
}

// A codec that gives a verdict knows better than "undecodable".
func TestACodecsOwnVerdictStands(t *testing.T) {
	h := longshore.Typed(away{}, func(context.Context, int, *longshore.Delivery) error { t.Error("it ran"); return nil })
	d := longshore.NewDelivery(t.Context(), nil, 1)
	d.Body = []byte("x")
	err := h.Handle(t.Context(), d)
	if v, _ := longshore.VerdictOf(err); v != longshore.VerdictRelease || longshore.CodeOf(err) != longshore.CodeUnreachable {
		t.Errorf("%v %v", v, err)
	}
}

// Other producers write the content type into headers, each in its own way.
func TestAHeaderStandsInForTheContentType(t *testing.T) {
	codec := longshore.ContentTypes{Default: tagged("default"), Types: map[string]longshore.Codec{"application/json": tagged("json"), "text/*": tagged("text")}}
	for want, ms := range map[string][]longshore.Message{
		"json": {
			{Headers: longshore.Headers{{Name: "Content-Type", Value: "Application/JSON; charset=utf-8"}}},
			{Headers: longshore.Headers{{Name: "content-type", Value: []byte("application/json")}}},
			{Headers: longshore.Headers{{Name: "CONTENT-TYPE", Value: " application/json "}}},
			{Headers: longshore.Headers{{Name: "x", Value: "text/plain"}, {Name: "contentType", Value: `"application/json"`}}},
			{Headers: longshore.Headers{{Name: "contentType", Value: `"application/json;charset=\"UTF-8\""`}}},
			{Headers: longshore.Headers{{Name: "Content-Type", Value: ""}, {Name: "contentType", Value: "application/json"}}},
			{ContentType: "application/json", Headers: longshore.Headers{{Name: "Content-Type", Value: "text/plain"}}},
		},
		"default": {
			{Headers: longshore.Headers{{Name: "Content-Type", Value: int64(1)}, {Name: "content_type", Value: "text/plain"}}},
			{Headers: longshore.Headers{{Name: "contentType", Value: `""`}}, ContentType: " "},
		},
	} {
		for _, m := range ms {
			var got string
			m.Body = []byte("x")
			if err := codec.Decode(t.Context(), &m, &got); err != nil || got != want {
				t.Errorf("%+v: %q, %v; want %q", m, got, err, want)
			}
		}
	}
}

// A byte order mark before JSON is no part of it.
func TestJSONBehindAByteOrderMark(t *testing.T) {
	var got struct{ ID int }
	m := &longshore.Message{Body: []byte("\xef\xbb\xbf{\"ID\": 7}")}
	if err := (longshore.JSON{}).Decode(t.Context(), m, &got); err != nil || got.ID != 7 {
		t.Errorf("%+v, %v", got, err)
	}
}
