package registry_test

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/codec/registry"
)

const (
	jsonGUID  = "7a62595e-1a2b-4c3d-0e4f-00112233445e" // valid UTF-8, so that Kafka's header arrives as text
	protoGUID = "91111111-2222-4333-8444-555555555555"
)

// byGUID is what Confluent's HeaderSchemaIdSerializer writes, with an index for protobuf.
func byGUID(t *testing.T, guid string, index ...byte) []byte {
	t.Helper()
	raw, err := hex.DecodeString(strings.ReplaceAll(guid, "-", ""))
	if err != nil {
		t.Fatal(err)
	}
	return append(append([]byte{1}, raw...), index...)
}

// F-N19: producers may name the schema in a header and leave the body as it is.
func TestTheSchemaMayBeNamedInAHeader(t *testing.T) {
	s := serve(t)
	s.set(func() {
		s.schemas[jsonGUID] = `{"schemaType":"JSON","schema":"{}","guid":"` + jsonGUID + `"}`
		s.schemas[protoGUID] = `{"schemaType":"PROTOBUF","schema":"syntax = \"proto3\";","id":2,"guid":"` + protoGUID + `"}`
	})
	var seen registry.Schema
	c := s.codec(t, func(cfg *registry.Config) {
		cfg.Codecs[registry.Protobuf] = &watching{Codec: cfg.Codecs[registry.Protobuf], seen: &seen}
	})
	json := byGUID(t, jsonGUID)
	for name, m := range map[string]*longshore.Message{
		"a GUID":                 {Body: []byte("7"), Headers: longshore.Headers{{Name: "__value_schema_id", Value: json}}},
		"a GUID as text":         {Body: []byte("7"), Headers: longshore.Headers{{Name: "__value_schema_id", Value: string(json)}}},
		"the last of two":        {Body: []byte("7"), Headers: longshore.Headers{{Name: "__value_schema_id", Value: []byte{9}}, {Name: "__value_schema_id", Value: json}}},
		"an id":                  {Body: []byte("7"), Headers: longshore.Headers{{Name: "__value_schema_id", Value: []byte{0, 0, 0, 0, 1}}}},
		"a GUID before the body": {Body: append(slices.Clone(json), '7')},
		"of the key, not of it":  {Body: []byte{0, 0, 0, 0, 1, '7'}, Headers: longshore.Headers{{Name: "__key_schema_id", Value: []byte{9}}}},
	} {
		var got int
		if err := c.Decode(t.Context(), m, &got); err != nil || got != 7 {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	if n := s.count(jsonGUID); n != 1 {
		t.Errorf("asked %d times", n)
	}

	want := durationpb.Duration{Seconds: 7}
	body, err := proto.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	var got durationpb.Duration
	m := &longshore.Message{Body: body, Headers: longshore.Headers{{Name: "__value_schema_id", Value: byGUID(t, protoGUID, 0)}}}
	if err := c.Decode(t.Context(), m, &got); err != nil || !proto.Equal(&got, &want) {
		t.Errorf("%v, %v", &got, err)
	}
	if seen.GUID != protoGUID || seen.ID != 2 || !slices.Equal(seen.Index, []int{0}) {
		t.Errorf("the codec saw %+v", seen)
	}
}

// F-N19: what is written with another schema does not keep the header of what was read.
func TestWritingTakesTheSchemaHeaderOfARead(t *testing.T) {
	s := serve(t)
	s.set(func() {
		s.subjects["orders-value"] = `{"subject":"orders-value","id":1,"version":7,"schemaType":"JSON","schema":"{}"}`
	})
	c := s.codec(t, func(cfg *registry.Config) { cfg.Subject = func(*longshore.Message) string { return "orders-value" } })
	read := longshore.Headers{{Name: "a", Value: "b"}, {Name: "__value_schema_id", Value: byGUID(t, protoGUID)}}
	m := &longshore.Message{Headers: read}
	if err := c.Encode(t.Context(), 7, m); err != nil {
		t.Fatal(err)
	}
	var got int
	if err := c.Decode(t.Context(), m, &got); err != nil || got != 7 || len(m.Headers) != 1 || len(read) != 2 || read[1].Name != "__value_schema_id" {
		t.Errorf("%d, %v, %v, %v", got, err, m.Headers, read)
	}
}

// F-N19: a header that cannot be read, or names what is not there, is called so.
func TestABadSchemaHeaderIsCalledSo(t *testing.T) {
	c := serve(t).codec(t, nil)
	for name, x := range map[string]struct {
		header any
		code   longshore.Code
		text   string
	}{
		"cut off":    {[]byte{1, 2, 3}, longshore.CodeUndecodable, "__value_schema_id"},
		"a number":   {int64(7), longshore.CodeUndecodable, "__value_schema_id"},
		"empty":      {nil, longshore.CodeUndecodable, "__value_schema_id"},
		"unknown":    {byGUID(t, protoGUID), longshore.CodeNotFound, protoGUID},
		"no index":   {[]byte{0, 0, 0, 0, 2}, longshore.CodeUndecodable, "id 2"},
		"unknown id": {[]byte{0, 0, 0, 0, 9}, longshore.CodeNotFound, "id 9"},
	} {
		m := &longshore.Message{Body: []byte("7"), Headers: longshore.Headers{{Name: "__value_schema_id", Value: x.header}}}
		err := c.Decode(t.Context(), m, new(int))
		if !errors.Is(err, x.code) || !strings.Contains(err.Error(), x.text) || strings.Contains(err.Error(), "does not use") {
			t.Errorf("%s: %v", name, err)
		}
		if v, _ := longshore.VerdictOf(err); v != longshore.VerdictNone {
			t.Errorf("%s: verdict %q", name, v)
		}
	}
}
