package container

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/transport/memory"
)

// Reopen.Every is a fixed recovery interval: the pause does not grow and does not vary.
func TestFixedRecoveryInterval(t *testing.T) {
	set, _, err := resolve(memory.New(memory.Config{}).Queue("q", memory.QueueConfig{}), Config{Reopen: Backoff{Every: 5 * time.Second}}, false)
	if err != nil {
		t.Fatal(err)
	}
	s := subscription{reopen: set.reopen}
	for i := range 5 {
		if got := s.failed(time.Unix(1000, 0), errors.New("away"), float64(i)/5); got != 5*time.Second {
			t.Errorf("pause %d is %v", i, got)
		}
	}
	if _, _, err := resolve(memory.New(memory.Config{}).Queue("q", memory.QueueConfig{}), Config{Reopen: Backoff{Every: 5 * time.Second, Max: time.Minute}}, false); err == nil || !strings.Contains(err.Error(), "Reopen.Every") {
		t.Error(err)
	}
}
