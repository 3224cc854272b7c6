package longshore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
)

type thing struct{ ID string }

// typed runs a typed handler on a body and says with what it was called.
func typed[T any](t *testing.T, codec longshore.Codec, m longshore.Message, options ...longshore.TypedOption) (got *T, err error) {
	t.Helper()
	d := longshore.NewDelivery(t.Context(), nil, 1)
	d.Message = m
	err = longshore.Typed(codec, func(_ context.Context, v T, _ *longshore.Delivery) error {
		got = &v
		return nil
	}, options...).Handle(t.Context(), d)
	return got, err
}

// tombstoned checks that the handler did not run and the dead letter says why.
func tombstoned[T any](t *testing.T, name string, codec longshore.Codec, m longshore.Message) {
	t.Helper()
	got, err := typed[T](t, codec, m)
	if v, _ := longshore.VerdictOf(err); got != nil || v != longshore.VerdictReject || !errors.Is(err, longshore.CodeTombstone) || !strings.Contains(err.Error(), "tombstone") {
		t.Errorf("%s: handler got %v, %v", name, got, err)
	}
}

// F-N20: a tombstone is nil for a pointer; for other types it is a dead letter that says
// so, unless an option says otherwise. It never looks like an empty message.
func TestTombstoneIsNoEmptyMessage(t *testing.T) {
	dead := longshore.Message{Key: []byte("k")}
	types := longshore.ContentTypes{Types: map[string]longshore.Codec{"application/json": longshore.JSON{}}} // no Default: it has no type either
	for name, codec := range map[string]longshore.Codec{"json": longshore.JSON{}, "content types": types} {
		if got, err := typed[*thing](t, codec, dead); err != nil || got == nil || *got != nil {
			t.Errorf("%s: a pointer got %v, %v", name, got, err)
		}
		tombstoned[thing](t, name, codec, dead)
		tombstoned[map[string]any](t, name, codec, dead)
		tombstoned[[]string](t, name, codec, dead)
		tombstoned[any](t, name, codec, dead)
		if got, err := typed[thing](t, codec, dead, longshore.SkipTombstone); err != nil || got != nil {
			t.Errorf("%s: skipped: %v, %v", name, got, err)
		}
		if got, err := typed[thing](t, codec, dead, longshore.ZeroTombstone); err != nil || got == nil || *got != (thing{}) {
			t.Errorf("%s: zero: %v, %v", name, got, err)
		}
		if got, err := typed[*thing](t, codec, dead, longshore.SkipTombstone); err != nil || got == nil || *got != nil {
			t.Errorf("%s: the option is not for pointers: %v, %v", name, got, err)
		}
		used := &thing{ID: "of the message before"}
		if err := codec.Decode(t.Context(), &dead, used); !errors.Is(err, longshore.CodeTombstone) {
			t.Errorf("%s: decoded without a typed handler: %v", name, err)
		}
		if err := codec.Decode(t.Context(), &dead, &used); err != nil || used != nil {
			t.Errorf("%s: decoded into a pointer: %v, %v", name, used, err)
		}
	}
	if got, err := typed[[]byte](t, longshore.Raw{}, dead); err != nil || got == nil || *got != nil {
		t.Errorf("bytes got %v, %v", got, err)
	}
	tombstoned[string](t, "raw", longshore.Raw{}, dead)
}

// F-N20: an empty body, and JSON's null, are not tombstones.
func TestEmptyBodyIsTheCodecs(t *testing.T) {
	empty := longshore.Message{Body: []byte{}}
	if got, err := typed[*thing](t, longshore.JSON{}, empty, longshore.SkipTombstone); got != nil || !errors.Is(err, longshore.CodeUndecodable) {
		t.Errorf("JSON of nothing: %v, %v", got, err)
	}
	if got, err := typed[[]byte](t, longshore.Raw{}, empty); err != nil || got == nil || *got == nil {
		t.Errorf("bytes got %v, %v", got, err)
	}
	if got, err := typed[string](t, longshore.Raw{}, empty); err != nil || got == nil {
		t.Errorf("text got %v, %v", got, err)
	}
	if got, err := typed[*thing](t, longshore.JSON{}, longshore.Message{Body: []byte("null")}); err != nil || got == nil || *got != nil {
		t.Errorf("null: %v, %v", got, err)
	}
}
