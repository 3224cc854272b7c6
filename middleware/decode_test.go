package middleware_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware"
)

func TestDecodeUnpacksInTheOrderOfTheEncodings(t *testing.T) {
	plain := []byte("hello, hello, hello")
	for encoding, body := range map[string][]byte{
		"":             plain,
		"UTF-8":        plain, // what Spring writes
		"gzip":         zipped(t, plain),
		"x-gzip":       zipped(t, plain),
		"zstd":         zstandard(t, plain),
		"zstd, gzip":   zipped(t, zstandard(t, plain)),
		"GZIP , utf-8": zipped(t, plain),
		"rot":          []byte("uryyb"),
	} {
		var got longshore.Message
		cfg := middleware.DecodeConfig{Codings: map[string]func(io.Reader) (io.Reader, error){
			"rot": func(io.Reader) (io.Reader, error) { return bytes.NewReader(plain), nil },
		}}
		d := delivery(longshore.Message{Body: body, ContentEncoding: encoding})
		err := longshore.Chain(handle(func(_ context.Context, d *longshore.Delivery) error { got = d.Message; return nil }), middleware.Decode(cfg)).Handle(t.Context(), d)
		if err != nil || !bytes.Equal(got.Body, plain) {
			t.Errorf("%q: %q, %v", encoding, got.Body, err)
		}
		if r := d.Received(); !bytes.Equal(r.Body, body) || r.ContentEncoding != encoding {
			t.Errorf("%q: what was received has changed", encoding)
		}
	}
}

// What other programs write about their packing: base64 behind gzip, a character set behind
// a colon, the header in any spelling, and Celery's, whose application/x-gzip is zlib.
func TestDecodeReadsTheWordsOfOthers(t *testing.T) {
	plain := []byte("hello, hello, hello")
	var deflated bytes.Buffer
	z := zlib.NewWriter(&deflated)
	_, _ = z.Write(plain)
	_ = z.Close()
	text := []byte(base64.StdEncoding.EncodeToString(zipped(t, plain)))
	header := func(name, value string) longshore.Headers {
		return longshore.Headers{{Name: name, Value: value}, {Name: "kept", Value: "x"}}
	}
	for name, m := range map[string]longshore.Message{
		"gzip,base64":         {ContentEncoding: "gzip,base64", Body: text},
		"gzip:UTF-8":          {ContentEncoding: "gzip:UTF-8", Body: zipped(t, plain)},
		"Content-Encoding":    {Headers: header("Content-Encoding", "gzip, base64"), Body: text},
		"CONTENT-ENCODING":    {Headers: header("CONTENT-ENCODING", "gzip"), Body: zipped(t, plain)},
		"celery":              {ContentEncoding: "utf-8", Headers: header("compression", "application/x-gzip"), Body: deflated.Bytes()},
		"celery, zstd":        {ContentEncoding: "binary", Headers: header("compression", "application/zstd"), Body: zstandard(t, plain)},
		"another compression": {Headers: header("compression", "none"), Body: plain},
	} {
		var got longshore.Message
		err := longshore.Chain(handle(func(_ context.Context, d *longshore.Delivery) error { got = d.Message; return nil }), middleware.Decode(middleware.DecodeConfig{})).Handle(t.Context(), delivery(m))
		if err != nil || !bytes.Equal(got.Body, plain) || len(m.Headers) > 0 && !got.Headers.Has("kept") {
			t.Errorf("%s: %q %v, %v", name, got.Body, got.Headers, err)
		}
		if name != "another compression" && (got.Headers.Has("compression") || len(got.Headers) > 1) {
			t.Errorf("%s: %v says that it is packed", name, got.Headers)
		}
	}
}

// F-I01: what cannot be unpacked is a verdict for that message.
func TestDecodeRejectsWhatCannotBeUnpacked(t *testing.T) {
	bomb := zipped(t, make([]byte, 2<<20))
	for name, c := range map[string]struct {
		encoding string
		body     []byte
		code     longshore.Code
		says     string
	}{
		"unknown": {"snappy", []byte("x"), longshore.CodeUndecodable, "deflate, gzip"},
		"not it":  {"gzip", []byte("plain"), longshore.CodeUndecodable, "gzip"},
		"cut off": {"gzip", zipped(t, []byte("hello"))[:15], longshore.CodeUndecodable, "unexpected EOF"},
		"empty":   {"zstd, gzip", []byte{}, longshore.CodeUndecodable, "gzip"},
		"no end":  {strings.Repeat("gzip,", 20) + "gzip", zipped(t, []byte("x")), longshore.CodeUndecodable, "more than 16 in a row"},
		// Twelve bytes that ask for a window of 256 MiB.
		"wide":      {"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x90, 0x19, 0, 0, 'a', 'b', 'c'}, longshore.CodeTooLarge, "its window is more than 33554432 bytes"},
		"too large": {"gzip", bomb, longshore.CodeTooLarge, "more than 1048576 bytes"},
	} {
		d := delivery(longshore.Message{ID: "m-1", Body: c.body, ContentEncoding: c.encoding})
		err := longshore.Chain(handle(func(context.Context, *longshore.Delivery) error { t.Error(name + ": handled"); return nil }), middleware.Decode(middleware.DecodeConfig{MaxBytes: 1 << 20})).Handle(t.Context(), d)
		if verdict(err) != longshore.VerdictReject || !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "m-1") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// F-I04: a tombstone has nothing to unpack, whatever its headers say.
func TestDecodeAndPackLeaveAMessageWithoutABody(t *testing.T) {
	seen := 0
	h := handle(func(_ context.Context, d *longshore.Delivery) error {
		if seen++; d.Body != nil {
			t.Errorf("body %q", d.Body)
		}
		return nil
	})
	if err := longshore.Chain(h, middleware.Decode(middleware.DecodeConfig{})).Handle(t.Context(), delivery(longshore.Message{ContentEncoding: "zstd, gzip"})); err != nil || seen != 1 {
		t.Errorf("%v, handled %d times", err, seen)
	}
	var m longshore.Message
	if err := middleware.Pack(bodiless{}, 0, "gzip").Encode(t.Context(), nil, &m); err != nil || m.Body != nil || m.ContentEncoding != "" {
		t.Errorf("%+v %v", m, err)
	}
}

// bodiless is a codec that writes tombstones.
type bodiless struct{ longshore.JSON }

func (bodiless) Encode(context.Context, any, *longshore.Message) error { return nil }

// In a batch the handler gets the others, and its result is about them.
func TestDecodeLeavesTheOthersOfABatch(t *testing.T) {
	ds := make([]*longshore.Delivery, 4)
	for i := range ds {
		ds[i] = delivery(longshore.Message{ID: fmt.Sprint(i), Body: []byte("x")})
	}
	ds[1].Message.ContentEncoding = "snappy"
	wrap, _ := middleware.Decode(middleware.DecodeConfig{}).(longshore.BatchWrapper)
	for name, c := range map[string]struct {
		result error
		failed string
	}{
		"all well": {nil, "[1]"},
		"one":      {longshore.BatchError{1: errors.New("own")}, "[1 2]"},
		"all":      {errors.New("all"), "[0 1 2 3]"},
	} {
		err := wrap.WrapBatch(longshore.BatchHandlerFunc(func(_ context.Context, got []*longshore.Delivery) error {
			if len(got) != 3 || got[1].ID != "2" {
				t.Errorf("the handler got %d", len(got))
			}
			return c.result
		})).HandleBatch(t.Context(), ds)
		var b longshore.BatchError
		if !errors.As(err, &b) {
			t.Fatalf("%s: %v", name, err)
		}
		var failed []int
		for i := range ds {
			if b[i] != nil {
				failed = append(failed, i)
			}
		}
		if fmt.Sprint(failed) != c.failed || verdict(b[1]) != longshore.VerdictReject {
			t.Errorf("%s: %v", name, b)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("gzip", zipped(f, []byte("hello")))
	f.Add("zstd,deflate", []byte{1, 2, 3})
	h := longshore.Chain(handle(func(context.Context, *longshore.Delivery) error { return nil }), middleware.Decode(middleware.DecodeConfig{MaxBytes: 1 << 16}))
	f.Fuzz(func(t *testing.T, encoding string, body []byte) {
		err := h.Handle(t.Context(), delivery(longshore.Message{Body: body, ContentEncoding: encoding}))
		if err != nil && verdict(err) != longshore.VerdictReject {
			t.Errorf("%v", err)
		}
	})
}
