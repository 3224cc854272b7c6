package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware"
)

func roomy() middleware.DecodeConfig {
	return middleware.DecodeConfig{MaxBytes: 1 << 20, MaxHeld: 2 << 20}
}

// F-N23: however many workers unpack small messages, large bodies take no more room
// together than MaxHeld; the others wait, and small ones do not.
func TestDecodeHoldsNoMoreThanItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bomb, small := zipped(t, make([]byte, 1<<20)), zipped(t, []byte("small"))
		end := make(chan struct{})
		running := make(chan int, 100)
		h := longshore.Chain(handle(func(_ context.Context, d *longshore.Delivery) error {
			running <- len(d.Body)
			<-end
			return nil
		}), middleware.Decode(roomy()))
		results := make(chan error, 10)
		for range 5 {
			go func() {
				results <- h.Handle(t.Context(), delivery(longshore.Message{Body: bomb, ContentEncoding: "gzip"}))
			}()
		}
		synctest.Wait()
		if n := len(running); n != 2 {
			t.Errorf("%d bodies of 1 MiB are unpacked, with room for 2", n)
		}
		go func() {
			results <- h.Handle(t.Context(), delivery(longshore.Message{Body: small, ContentEncoding: "gzip"}))
		}()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := h.Handle(ctx, delivery(longshore.Message{Body: bomb, ContentEncoding: "gzip"})); verdict(err) != longshore.VerdictRelease {
			t.Errorf("a stop while it waits: %v", err)
		}
		synctest.Wait()
		if n := len(running); n != 3 {
			t.Errorf("%d run, want the small one too", n)
		}
		close(end)
		for range 6 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}

// F-N23: a batch takes what fits, and what is behind it comes again in its order.
func TestDecodeOfABatchTakesWhatFits(t *testing.T) {
	bomb, small := zipped(t, make([]byte, 1<<20)), zipped(t, []byte("small"))
	wrap, _ := middleware.Decode(roomy()).(longshore.BatchWrapper)
	got := 0
	h := wrap.WrapBatch(longshore.BatchHandlerFunc(func(_ context.Context, ds []*longshore.Delivery) error {
		got = len(ds)
		return nil
	}))
	for range 2 { // the room is given back
		var ds []*longshore.Delivery
		for _, body := range [][]byte{small, bomb, bomb, bomb, small} {
			ds = append(ds, delivery(longshore.Message{Body: body, ContentEncoding: "gzip"}))
		}
		err := h.HandleBatch(t.Context(), ds)
		var b longshore.BatchError
		if !errors.As(err, &b) || got != 3 || fmt.Sprint(verdict(b[3]), verdict(b[4]), len(b)) != fmt.Sprint(longshore.VerdictRelease, longshore.VerdictRelease, 2) {
			t.Errorf("the handler got %d, %v", got, err)
		}
	}
}
