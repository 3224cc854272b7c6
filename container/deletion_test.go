package container_test

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestDeletionRefusesWhatItReplaces(t *testing.T) {
	src := memory.New(memory.Config{}).Queue("orders", memory.QueueConfig{})
	_, err := container.New(src, handle(func(*longshore.Delivery) error { return nil }), container.Config{Deletion: container.DeleteAlways, Settle: container.SettleManual,
		Redelivery: container.Redelivery{MaxAttempts: 3}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}})
	for _, name := range []string{"Redelivery.MaxAttempts", "DeadLetter", "Settle"} {
		if err == nil || !strings.Contains(err.Error(), "always does not go with "+name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	if _, err := container.New(src, handle(func(*longshore.Delivery) error { return nil }), container.Config{Deletion: 9}); err == nil || !strings.Contains(err.Error(), "DeleteNoRedrive") {
		t.Error(err)
	}
	if _, err := container.NewBatch(src, nil, container.Config{Deletion: container.DeleteNever}); err == nil || !strings.Contains(err.Error(), "never does not go with Batch") {
		t.Error(err)
	}
}
