//go:build unix

package main

import (
	"context"
	"fmt"
)

// faults are what can be done to a RabbitMQ cluster only. a and b are two of its nodes.
func (b rabbitCluster) faults(n *nodes, a, other *node) []fault {
	return []fault{
		{"the queue gets another leader: " + a.name, true, func(ctx context.Context) error {
			return n.eval(ctx, other, fmt.Sprintf(`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"%s">>)), rabbit_quorum_queue:transfer_leadership(Q, '%s').`, place, a.erlang()))
		}},
		{"the queue leaves a broker, and comes back: " + a.name, true, func(ctx context.Context) error {
			n.undo(func() error {
				return n.eval(context.WithoutCancel(ctx), other, fmt.Sprintf(`ok = rabbit_quorum_queue:add_member(<<"/">>, <<"%s">>, '%s', voter, 10000).`, place, a.erlang()))
			})
			return n.eval(ctx, other, fmt.Sprintf(`ok = rabbit_quorum_queue:delete_member(<<"/">>, <<"%s">>, '%s').`, place, a.erlang()))
		}},
		{"a memory alarm: " + a.name, true, func(ctx context.Context) error {
			n.undo(func() error { return n.ctl(context.WithoutCancel(ctx), a, "set_vm_memory_high_watermark", "0.6") })
			return n.ctl(ctx, a, "set_vm_memory_high_watermark", "0.000001")
		}},
		{"a disk alarm: " + a.name, true, func(ctx context.Context) error {
			n.undo(func() error { return n.ctl(context.WithoutCancel(ctx), a, "set_disk_free_limit", "50MB") })
			return n.ctl(ctx, a, "set_disk_free_limit", "900TB")
		}},
	}
}

// erlang is the broker's name among its own kind.
func (o *node) erlang() string { return "rabbit@" + o.ip }

func (n *nodes) ctl(ctx context.Context, one *node, args ...string) error {
	return command(ctx, one.ctl, args...)
}

// eval runs an expression on a node, for what rabbitmqctl has no command.
func (n *nodes) eval(ctx context.Context, one *node, expression string) error {
	return n.ctl(ctx, one, "eval", expression)
}
