package kafka

import (
	"context"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/longshore-go/longshore/transport"
)

// Consumers lists the members of the group, whichever program they belong to.
func (c *consumer) Consumers(ctx context.Context) (transport.ConsumerList, error) {
	op := "list the members of " + c.src.title()
	if c.src.cast {
		return transport.ConsumerList{}, unsupported(op, c.src.name(), "a broadcast has no group: every reader receives everything", "")
	}
	g, err := describeGroup(ctx, kadm.NewClient(c.cl), c.src.group)
	if err != nil {
		return transport.ConsumerList{}, c.src.b.failure(op, c.src.name(), err)
	}
	own, _ := c.cl.GroupMetadata()
	list := transport.ConsumerList{At: time.Now(), Total: len(g.members), Delivered: -1}
	for i := range g.members {
		m := &g.members[i]
		list.Partitions += m.partitions
		if len(list.Consumers) < mostMembers {
			list.Consumers = append(list.Consumers, transport.ListedConsumer{ID: m.id, Host: strings.TrimPrefix(m.host, "/"), Client: m.client,
				Partitions: m.partitions, Own: m.id != "" && m.id == own})
		}
	}
	return list, nil
}

// Consumers lists the members of the group; all of this consumer's are its own.
func (m *members) Consumers(ctx context.Context) (transport.ConsumerList, error) {
	list, err := m.all[0].Consumers(ctx)
	for _, c := range m.all[1:] {
		own, _ := c.cl.GroupMetadata()
		for i := range list.Consumers {
			l := &list.Consumers[i]
			l.Own = l.Own || own != "" && l.ID == own
		}
	}
	return list, err
}

// mostMembers bounds the list.
const mostMembers = 200
