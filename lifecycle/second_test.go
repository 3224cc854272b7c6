package lifecycle

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// A second signal comes when a handler does not return. What that abandons is named all
// the same, with its id.
func TestSecondSignalNamesWhatADeafHandlerKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, running, end := memory.New(memory.Config{}), make(chan struct{}), make(chan struct{})
		deaf := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { close(running); <-end; return nil })
		c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), deaf, container.Config{Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		pub, err := broker.Publisher(memory.PublisherConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if err := pub.Publish(t.Context(), "orders", &longshore.Message{ID: "o-1"}); err != nil {
			t.Fatal(err)
		}
		signals := make(chan os.Signal)
		go func() {
			<-running
			synctest.Wait() // the start has returned
			signals <- syscall.SIGTERM
			<-time.After(time.Second)
			signals <- syscall.SIGTERM
		}()
		var out bytes.Buffer
		begin := time.Now()
		if code := run(signals, &out, []Component{c}); code != 143 || !strings.Contains(out.String(), "abandoned 1") || !strings.Contains(out.String(), "(memory/orders/1)") {
			t.Errorf("exit %d, output %q", code, out.String())
		}
		if took := time.Since(begin); took > time.Second+lastWords {
			t.Errorf("it took %v", took)
		}
		close(end)
		synctest.Wait()
	})
}
