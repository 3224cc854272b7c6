package middleware_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// verbs records what became of a delivery that the test made.
type verbs struct{ longshore.Settler }

func delivery(m longshore.Message) *longshore.Delivery {
	d := longshore.NewDelivery(context.Background(), verbs{}, 1)
	d.Message = m
	return d
}

func handle(f func(ctx context.Context, d *longshore.Delivery) error) longshore.Handler {
	return longshore.HandlerFunc(f)
}

func verdict(err error) longshore.Verdict {
	v, _ := longshore.VerdictOf(err)
	return v
}

// work runs messages through a container with the middlewares until it is idle.
func work(t *testing.T, h longshore.Handler, mws []longshore.Middleware, msgs ...*longshore.Message) *container.ListenerContainer {
	t.Helper()
	c, err := container.New(memory.New(memory.Config{}).Queue("q", memory.QueueConfig{}), h, container.Config{Middleware: mws, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	containertest.PublishMessages(t, c, msgs...)
	containertest.WaitIdle(t, c)
	return c
}

func zipped(t testing.TB, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	return packed(t, &b, gzip.NewWriter(&b), body)
}

func zstandard(t testing.TB, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	return packed(t, &b, w, body)
}

func packed(t testing.TB, b *bytes.Buffer, w io.WriteCloser, body []byte) []byte {
	t.Helper()
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
