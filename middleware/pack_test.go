package middleware_test

import (
	"context"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware"
)

func TestPackedOnceOrTwiceIsReadBothWays(t *testing.T) {
	text := strings.Repeat("order ", 200)
	for want, codings := range map[string][]string{"gzip": {"gzip"}, "zstd": {"zstd"}, "zstd, gzip": {"zstd", "gzip"}, "deflate, zstd, gzip": {"deflate", "zstd", "gzip"}} {
		codec := middleware.Pack(longshore.Raw{}, 100, codings...)
		var m longshore.Message
		if err := codec.Encode(t.Context(), text, &m); err != nil || m.ContentEncoding != want || len(m.Body) >= len(text) {
			t.Fatalf("%s: %v, %q, %d bytes", want, err, m.ContentEncoding, len(m.Body))
		}
		var got string
		if err := codec.Decode(t.Context(), &m, &got); err != nil || got != text || m.ContentEncoding != want {
			t.Errorf("%s as a codec: %v, %q", want, err, got)
		}
		h := longshore.Chain(longshore.Typed(longshore.Raw{}, func(_ context.Context, s string, d *longshore.Delivery) error {
			if s != text || d.ContentEncoding != "" {
				t.Errorf("%s: %q", want, s)
			}
			return nil
		}), middleware.Decode(middleware.DecodeConfig{}))
		d := longshore.NewDelivery(t.Context(), nil, 1)
		d.Message = m
		if err := h.Handle(t.Context(), d); err != nil {
			t.Errorf("%s as a middleware: %v", want, err)
		}
	}
}

func TestPackLeavesSmallBodiesAndRefusesWhatItDoesNotKnow(t *testing.T) {
	var m longshore.Message
	if err := middleware.Pack(longshore.Raw{}, 100, "gzip").Encode(t.Context(), "small", &m); err != nil || m.ContentEncoding != "" || string(m.Body) != "small" {
		t.Errorf("%v, %+v", err, m)
	}
	if err := middleware.Pack(longshore.Raw{}, 0, "brotli").Encode(t.Context(), "x", &m); longshore.CodeOf(err) != longshore.CodeConfig {
		t.Errorf("brotli: %v", err)
	}
	var got string
	if err := middleware.Pack(longshore.Raw{}, 0, "gzip").Decode(t.Context(), &longshore.Message{Body: []byte("not packed"), ContentEncoding: "gzip"}, &got); err == nil {
		t.Error("a body that is not what it says")
	}
}
