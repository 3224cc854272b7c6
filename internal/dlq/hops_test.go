package dlq_test

import (
	"errors"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-N07: a replay counts as a hop, and leaves what has made too many.
func TestReplayLeavesWhatGoesRound(t *testing.T) {
	b := memory.New(memory.Config{})
	pub, err := b.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pub.Close(t.Context()) }()
	of := func(id string, hops int64) *longshore.Message {
		return &longshore.Message{ID: id, Headers: longshore.Headers{{Name: "longshore-dead-source", Value: "w"}, {Name: "longshore-dead-hops", Value: hops}}}
	}
	if err := pub.Publish(t.Context(), "dead", of("a", 7), of("b", 8)); err != nil {
		t.Fatal(err)
	}
	src := b.Queue("dead", memory.QueueConfig{})
	res, err := dlq.Replay(t.Context(), dlq.Job{Source: src, To: "w"})
	if err != nil || res.Done != 1 || res.Failed != 1 || !errors.Is(res.First, longshore.CodeHops) {
		t.Errorf("%+v, %v", res, err)
	}
	res, err = dlq.Replay(t.Context(), dlq.Job{Source: src, To: "w", MaxHops: 9})
	if err != nil || res.Done != 1 {
		t.Errorf("with a higher limit: %+v, %v", res, err)
	}
}
