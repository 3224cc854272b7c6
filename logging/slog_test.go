package logging_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/logging"
)

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// Every kind of field arrives under its name, in order, and groups nest.
func TestFieldsReachTheHandler(t *testing.T) {
	var out bytes.Buffer
	log := logging.Slog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
	log.Debug("not enabled")
	log.With(zap.String("container", "orders")).Named("a").Info("delivery failed", zap.Int("attempt", 2), zap.Skip(), zap.Duration("retry_in", time.Second),
		zap.Error(errors.New("no stock")), zap.Strings("ids", []string{"a", "b"}), zap.Bool("last", true), zap.Stringer("d", time.Minute))
	log.With(zap.Namespace("outer"), zap.Int("n", 1)).Warn("w", zap.Int("a", 1), zap.Namespace("inner"), zap.Int("b", 2))
	log.Error("e")
	want := `level=INFO msg="delivery failed" container=orders logger=a attempt=2 retry_in=1s error="no stock" ids="[a b]" last=true d=1m0s
level=WARN msg=w outer.n=1 outer.a=1 outer.inner.b=2
level=ERROR msg=e
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestNilIsTheDefault(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var out bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	logging.Slog(nil).Warn("here")
	if !strings.Contains(out.String(), "msg=here") {
		t.Errorf("%q", out.String())
	}
}

func ExampleSlog() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	logging.Slog(log).Info("container subscribed", zap.String("container", "orders")) // container.Config{Logger: logging.Slog(log)}
	// Output: level=INFO msg="container subscribed" container=orders
}
