package container_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// trying is a breaker in a trial that does not end.
type trying struct{}

func (*trying) Wrap(next longshore.Handler) longshore.Handler      { return next }
func (*trying) Watch(func(held bool, reason string)) (stop func()) { return func() {} }
func (*trying) Doubts() bool                                       { return true }

// While a breaker tries, the messages that are held are enough to try with: trials that
// fail for an hour receive no more of a key whose first message comes back again and again.
//
// F-F07
func TestTrialsUseWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Config{})
		src := m.Queue("q", memory.QueueConfig{})
		for i := range 500 {
			send(t, m, "q", &longshore.Message{Key: []byte{'k', byte('a' + i%4)}, Body: []byte("x")})
		}
		c := start(t, src, handle(func(*longshore.Delivery) error {
			return longshore.Release(errors.New("the trial failed"), 500*time.Millisecond)
		}), container.Config{Order: container.ByKey, Workers: container.Workers{Min: 2, Max: 2}, Middleware: []longshore.Middleware{&trying{}}})
		wait(10 * time.Minute)
		st := c.Stats()
		if held := st.InFlight + st.Parked; held > 4*st.Window {
			t.Errorf("%d are held, the window is %d", held, st.Window)
		}
		if st.Released < 600 {
			t.Errorf("only %d trials in ten minutes", st.Released)
		}
	})
}
