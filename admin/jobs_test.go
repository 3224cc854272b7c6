package admin

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/internal/dlq"
)

// A job whose request was answered in the instant of the stop is waited for too.
func TestStopWaitsForAJobThatBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		js := &jobs{hub: newHub()}
		js.start(ctx)
		j, run, err := js.begin(Job{Container: "orders", Kind: "purge"})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			js.stop()
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("the stop did not wait for a job that began")
		default:
		}
		if _, _, err := js.begin(Job{Container: "payments", Kind: "purge"}); err == nil {
			t.Fatal("a job began while the server stops")
		}
		js.run(run, j, func(ctx context.Context) (dlq.Result, error) { return dlq.Result{}, ctx.Err() }, func(dlq.Result) {})
		<-stopped
		if j.State != jobStopped {
			t.Fatal(j.State)
		}
	})
}
