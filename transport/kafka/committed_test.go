package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// From version 10 on an answer names topics by their ids, and a client that has just
// been made does not know the name. A position that is not found then would be the
// partition's beginning, and all of it would come again.
func TestPositionsAreFoundWhateverTheAnswerNames(t *testing.T) {
	t.Parallel()
	id := [16]byte{1}
	saved := "text"
	for name, c := range map[string]struct {
		topic string
		id    [16]byte
		want  commitRead
	}{
		"the name":                {"orders", id, commitRead{id, 500, 2, saved}},
		"the id":                  {"", id, commitRead{id, 500, 2, saved}},
		"an id that is not known": {"", [16]byte{9}, commitRead{[16]byte{}, 500, 2, ""}},
	} {
		resp := kmsg.NewPtrOffsetFetchResponse()
		p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = 3, 500, 2, &saved
		topic := kmsg.NewOffsetFetchResponseGroupTopic()
		topic.Topic, topic.TopicID = c.topic, c.id
		topic.Partitions = append(topic.Partitions, p)
		group := kmsg.NewOffsetFetchResponseGroup()
		group.Topics = append(group.Topics, topic)
		resp.Groups = append(resp.Groups, group)
		k := &membership{}
		if err := k.fetched(t.Context(), nil, resp); err != nil {
			t.Fatal(err)
		}
		r, ok := committedAt(k.read, partitionOf{"orders", id, 3}, kgo.NewOffset().At(500).WithEpoch(2))
		if !ok || r != c.want {
			t.Errorf("%s: %+v %v, want %+v", name, r, ok, c.want)
		}
	}
	if r, ok := committedAt(nil, partitionOf{"orders", id, 3}, kgo.NewOffset().AtStart()); ok {
		t.Errorf("no position: %+v", r)
	}
}
