package demo

import (
	"context"

	"github.com/longshore-go/longshore/transport/memory"
)

func memoryRig(cfg Config) (*rig, error) {
	broker := memory.New(memory.Config{})
	orders, dead := queueNames(cfg.Seed)
	return &rig{
		name: "memory", label: "memory",
		source: broker.Queue(orders, memory.QueueConfig{}),
		dead:   broker.Queue(dead, memory.QueueConfig{}),
		deadTo: dead,
		cut:    func() int { broker.Drop(); return 1 }, // the container's
		remove: func(context.Context) error { broker.Delete(orders, dead); return nil },
	}, nil
}
