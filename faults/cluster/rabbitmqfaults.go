//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// faults are what can be done to a RabbitMQ cluster only. a and b are two of its nodes.
func (b rabbitCluster) faults(n *nodes, a, other *node) []fault {
	return []fault{
		{"the queue gets another leader: " + a.name, true, func(ctx context.Context) error {
			return n.eval(ctx, other, fmt.Sprintf(`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"%s">>)), rabbit_quorum_queue:transfer_leadership(Q, '%s').`, place, a.erlang()))
		}},
		{"the queue leaves a broker, and comes back: " + a.name, true, func(ctx context.Context) error {
			n.undo(func() (err error) {
				for range 12 { // the members that are left may be electing a leader
					err = n.eval(context.WithoutCancel(ctx), other, fmt.Sprintf(`ok = rabbit_quorum_queue:add_member(<<"/">>, <<"%s">>, '%s', voter, 10000).`, place, a.erlang()))
					if err == nil || pause(ctx, 5*time.Second) != nil {
						return err
					}
				}
				return err
			})
			return n.eval(ctx, other, fmt.Sprintf(`ok = rabbit_quorum_queue:delete_member(<<"/">>, <<"%s">>, '%s').`, place, a.erlang()))
		}},
		{"a memory alarm: " + a.name, true, func(ctx context.Context) error {
			n.undo(func() error { return n.ctl(context.WithoutCancel(ctx), a, "set_vm_memory_high_watermark", "0.6") })
			return n.ctl(ctx, a, "set_vm_memory_high_watermark", "0.000001")
		}},
		{"a disk alarm: " + a.name, true, func(ctx context.Context) error {
			n.undo(func() error { return n.ctl(context.WithoutCancel(ctx), a, "set_disk_free_limit", "50MB") })
			return n.ctl(ctx, a, "set_disk_free_limit", "100000GB")
		}},
	}
}

// memory is what the leader's process has.
func (b rabbitCluster) memory(ctx context.Context) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.hosts[0]+":15672/api/queues/%2F/"+place, http.NoBody)
	if err != nil {
		return 0, err
	}
	req.SetBasicAuth("guest", "guest")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the memory of queue %q: %s", place, res.Status)
	}
	var queue struct {
		Memory float64 `json:"memory"`
	}
	err = json.NewDecoder(res.Body).Decode(&queue)
	return queue.Memory, err
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
