package registry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/codec/registry"
	"github.com/longshore-go/longshore/transport"
)

func TestASchemaIsAskedForOnce(t *testing.T) {
	s := serve(t)
	c := s.codec(t, nil)
	for range 5 {
		var v int
		m := &longshore.Message{Body: []byte{0, 0, 0, 1, 2, '4', '2'}}
		if err := c.Decode(t.Context(), m, &v); err != nil || v != 42 || len(m.Body) != 7 {
			t.Fatal(v, err, m.Body)
		}
	}
	if n := s.count("258"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestTheLeastUsedSchemaGoesFirst(t *testing.T) {
	s := serve(t)
	s.set(func() { s.schemas["4"] = s.schemas["1"]; s.schemas["5"] = s.schemas["1"] })
	c := s.codec(t, func(cfg *registry.Config) { cfg.CacheSize = 2 })
	for _, id := range []byte{1, 4, 1, 5, 1, 4} { // 5 takes the place of 4
		if err := c.Decode(t.Context(), framed(id, '1'), new(int)); err != nil {
			t.Fatal(err)
		}
	}
	if s.count("1") != 1 || s.count("4") != 2 || s.count("5") != 1 {
		t.Errorf("asked %d, %d, %d times", s.count("1"), s.count("4"), s.count("5"))
	}
}

func TestThoseWhoAskAtOnceShareOneRequest(t *testing.T) {
	s := serve(t)
	hold := make(chan struct{})
	s.set(func() { s.hold = hold })
	c := s.codec(t, func(cfg *registry.Config) { cfg.Timeout = time.Minute })
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if err := c.Decode(t.Context(), framed(1, '1'), new(int)); err != nil {
				t.Error(err)
			}
		})
	}
	close(hold)
	group.Wait()
	if n := s.count("1"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// What is the message's fault is rejected; what is the registry's is released, which is
// no attempt, whatever the outage looks like.
func TestAnOutageIsNotTheMessagesFault(t *testing.T) {
	s := serve(t)
	gone := serve(t)
	gone.Close()
	for name, x := range map[string]struct {
		change  func(*registry.Config)
		down    int
		m       *longshore.Message
		verdict longshore.Verdict
		code    longshore.Code
	}{
		"an unknown id":        {nil, 0, framed(9), longshore.VerdictReject, longshore.CodeNotFound},
		"no header":            {nil, 0, &longshore.Message{Body: []byte(`{"id":1}`)}, longshore.VerdictReject, longshore.CodeUndecodable},
		"a cut header":         {nil, 0, &longshore.Message{Body: []byte{0, 0, 0}}, longshore.VerdictReject, longshore.CodeUndecodable},
		"a cut index":          {nil, 0, framed(2), longshore.VerdictReject, longshore.CodeUndecodable},
		"an index of millions": {nil, 0, framed(2, 0xfe, 0xff, 0xff, 0x7f), longshore.VerdictReject, longshore.CodeUndecodable},
		"an index below zero":  {nil, 0, framed(2, 2, 1), longshore.VerdictReject, longshore.CodeUndecodable},
		"no codec for it":      {nil, 0, framed(3), longshore.VerdictReject, longshore.CodeUnsupported},
		"an error inside":      {nil, 0, framed(1, 'x'), longshore.VerdictReject, longshore.CodeUndecodable},
		"nobody answers":       {func(cfg *registry.Config) { cfg.URLs = []string{gone.URL} }, 0, framed(1, '1'), longshore.VerdictRelease, longshore.CodeUnreachable},
		"an error of its own":  {nil, http.StatusInternalServerError, framed(1, '1'), longshore.VerdictRelease, longshore.CodeUnreachable},
		"a proxy's 404":        {nil, http.StatusNotFound, framed(1, '1'), longshore.VerdictRelease, longshore.CodeUnreachable},
		"forbidden":            {nil, http.StatusForbidden, framed(1, '1'), longshore.VerdictRelease, longshore.CodeForbidden},
		"a wrong password":     {func(cfg *registry.Config) { cfg.Password = transport.Static("other-word") }, 0, framed(1, '1'), longshore.VerdictRelease, longshore.CodeAuth},
		"too slow":             {func(cfg *registry.Config) { cfg.Timeout = time.Nanosecond }, 0, framed(1, '1'), longshore.VerdictRelease, longshore.CodeTimeout},
	} {
		s.set(func() { s.down = x.down })
		h := longshore.Typed(s.codec(t, x.change), func(context.Context, int, *longshore.Delivery) error {
			t.Errorf("%s: the handler ran", name)
			return nil
		})
		d := longshore.NewDelivery(t.Context(), nil, 1)
		d.Message = *x.m
		err := h.Handle(t.Context(), d)
		if v, _ := longshore.VerdictOf(err); v != x.verdict || !errors.Is(err, x.code) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
		if text := err.Error(); strings.Contains(text, "-word") || strings.Contains(text, "html") {
			t.Errorf("%s: it tells too much: %s", name, text)
		}
	}
}

func TestTheNextURLIsAskedWhereOneIsGone(t *testing.T) {
	s, gone := serve(t), serve(t)
	gone.Close()
	c := s.codec(t, func(cfg *registry.Config) { cfg.URLs = []string{gone.URL, s.URL} })
	if err := c.Decode(t.Context(), framed(1, '1'), new(int)); err != nil {
		t.Error(err)
	}
}

// The index of a nested type goes out and comes back, and the codec of the kind sees
// the schema.
func TestProtobufHasTheIndexOfItsMessage(t *testing.T) {
	s := serve(t)
	s.set(func() {
		s.subjects["orders-value"] = `{"subject":"orders-value","id":2,"version":7,"schemaType":"PROTOBUF","schema":"syntax = \"proto3\";"}`
	})
	var seen registry.Schema
	c := s.codec(t, func(cfg *registry.Config) {
		cfg.Subject = func(*longshore.Message) string { return "orders-value" }
		cfg.Codecs[registry.Protobuf] = &watching{Codec: cfg.Codecs[registry.Protobuf], seen: &seen}
	})
	for name, x := range map[string]struct {
		v      proto.Message
		header []byte
		index  []int
	}{
		"the first of its file": {&durationpb.Duration{Seconds: 7}, []byte{0, 0, 0, 0, 2, 0}, []int{0}},
		"one inside of another": {&descriptorpb.DescriptorProto_ReservedRange{Start: proto.Int32(7)}, []byte{0, 0, 0, 0, 2, 4, 4, 2}, []int{2, 1}},
	} {
		m := &longshore.Message{}
		if err := c.Encode(t.Context(), x.v, m); err != nil || !strings.HasPrefix(string(m.Body), string(x.header)) || m.ContentType != "application/x-protobuf" {
			t.Errorf("%s: %v, % x, %q", name, err, m.Body, m.ContentType)
			continue
		}
		back := proto.Clone(x.v)
		proto.Reset(back)
		if err := c.Decode(t.Context(), m, back); err != nil || !proto.Equal(back, x.v) {
			t.Errorf("%s: %v, %v", name, err, back)
		}
		if seen.ID != 2 || seen.Kind != registry.Protobuf || !strings.HasPrefix(seen.Text, "syntax") || !slices.Equal(seen.Index, x.index) {
			t.Errorf("%s: the codec saw %+v", name, seen)
		}
	}
}

type watching struct {
	longshore.Codec
	seen *registry.Schema
}

func (w *watching) Decode(ctx context.Context, m *longshore.Message, v any) error {
	*w.seen, _ = registry.SchemaOf(ctx)
	return w.Codec.Decode(ctx, m, v)
}

// Each time the latest schema has expired it is asked for; without an answer the last
// one goes on.
func TestWritingGoesOnWithoutTheRegistry(t *testing.T) {
	s := serve(t)
	s.set(func() { s.subjects["a"] = `{"subject":"a","id":1,"version":1,"schemaType":"JSON","schema":"{}"}` })
	c := s.codec(t, func(cfg *registry.Config) {
		cfg.Subject, cfg.Refresh = func(m *longshore.Message) string { return m.Type }, time.Nanosecond
	})
	write := func(subject string) (*longshore.Message, error) {
		m := &longshore.Message{Type: subject}
		return m, c.Encode(t.Context(), 42, m)
	}
	if m, err := write("a"); err != nil || string(m.Body) != "\x00\x00\x00\x00\x0142" || m.ContentType != "application/json" || m.Type != "a" {
		t.Fatal(m, err)
	}
	if _, err := write("b"); !errors.Is(err, longshore.CodeNotFound) {
		t.Error(err)
	}
	s.set(func() { s.down = http.StatusServiceUnavailable })
	if _, err := write("a"); err != nil || s.count("a") != 2 {
		t.Error(err, s.count("a"))
	}
	if m, err := write("c"); !errors.Is(err, longshore.CodeUnreachable) || m.Body != nil {
		t.Error(m, err)
	}
	if err := s.codec(t, nil).Encode(t.Context(), 1, &longshore.Message{}); !errors.Is(err, longshore.CodeConfig) {
		t.Error(err)
	}
}

func TestAllThatIsWrongIsToldAtOnce(t *testing.T) {
	_, err := registry.New(registry.Config{URLs: []string{"http://app:hidden-word@registry", "registry:8081"}, Timeout: -1,
		Codecs: map[registry.Kind]longshore.Codec{"XML": longshore.JSON{}}})
	for _, want := range []string{"URLs[0] holds credentials", "URLs[1] is not an http", `the kind "XML"`, "negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if !errors.Is(err, longshore.CodeConfig) || strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
	if _, err := registry.New(registry.Config{}); err == nil || !strings.Contains(err.Error(), "no URLs") || !strings.Contains(err.Error(), "no Codecs") {
		t.Error(err)
	}
}

// F-N20: a tombstone has no schema: a pointer is nil, other types are told so, and the
// registry is not asked.
func TestTombstoneHasNoSchema(t *testing.T) {
	s := serve(t)
	c := s.codec(t, nil)
	v := new(int)
	if err := c.Decode(t.Context(), &longshore.Message{}, &v); err != nil || v != nil {
		t.Errorf("%v, %v", v, err)
	}
	if err := c.Decode(t.Context(), &longshore.Message{}, new(int)); !errors.Is(err, longshore.CodeTombstone) {
		t.Errorf("a number: %v", err)
	}
	if err := c.Decode(t.Context(), &longshore.Message{Body: []byte{}}, new(int)); !errors.Is(err, longshore.CodeUndecodable) {
		t.Errorf("an empty body: %v", err)
	}
}

// F-N25: a refusal of one id by a registry that answers is the message's fault, whatever
// the answer looks like, and is remembered. The same answer for everything is about the
// address, and the messages wait.
func TestUnknownIDWithoutACodeIsTheMessagesFault(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest, http.StatusGone, http.StatusUnprocessableEntity} {
		for _, proved := range []string{"by its types", "by a schema"} {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				c := fake(t, func(path string) (int, string) {
					switch {
					case path == "/schemas/types" && proved == "by its types":
						return http.StatusOK, `["AVRO","JSON"]`
					case path == "/schemas/ids/1":
						return http.StatusOK, `{"schemaType":"JSON","schema":"{}"}`
					case path == "/schemas/ids/9":
						asked++
						return status, "<html>secret-word</html>"
					}
					return http.StatusNotFound, ""
				})
				if proved == "by a schema" {
					if err := c.Decode(t.Context(), framed(1, '1'), new(int)); err != nil {
						t.Fatal(err)
					}
				}
				ask := func() error { return c.Decode(t.Context(), framed(9, '1'), new(int)) }
				for range 5 {
					err := ask()
					if v, _ := longshore.VerdictOf(err); v != longshore.VerdictNone || !errors.Is(err, longshore.CodeNotFound) || strings.Contains(err.Error(), "secret") {
						t.Errorf("%d, %s: %v", status, proved, err)
					}
				}
				if asked != 1 {
					t.Errorf("%d, %s: asked %d times", status, proved, asked)
				}
				<-time.After(61 * time.Second)
				_ = ask()
				if asked != 2 {
					t.Errorf("%d, %s: after a minute: asked %d times", status, proved, asked)
				}
			})
		}
	}
	for _, status := range []int{http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusNotFound} {
		c := fake(t, func(path string) (int, string) {
			if path == "/schemas/types" && status != http.StatusNotFound {
				return http.StatusOK, `["AVRO"]`
			}
			return status, ""
		})
		if v, _ := longshore.VerdictOf(c.Decode(t.Context(), framed(9, '1'), new(int))); v != longshore.VerdictRelease {
			t.Errorf("%d: verdict %q", status, v)
		}
	}
}

// fake is a codec on a registry without a network.
func fake(t *testing.T, answer func(path string) (status int, body string)) *registry.Codec {
	t.Helper()
	c, err := registry.New(registry.Config{URLs: []string{"http://registry"}, Codecs: map[registry.Kind]longshore.Codec{registry.JSON: longshore.JSON{}},
		Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			status, body := answer(r.URL.Path)
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r, Header: http.Header{}}, nil
		})}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
