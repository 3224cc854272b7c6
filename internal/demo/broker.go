package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/longshore-go/longshore/bridge/workflow"
	"github.com/longshore-go/longshore/transport"
)

// rig is one broker made ready: a queue, its dead-letter queue and a way to break
// the connections.
type rig struct {
	name  string // "rabbitmq"
	label string // where it runs: "amqptest", or an address
	// source and dead consume from the two queues.
	source, dead transport.Source
	deadTo       string // the dead-letter destination
	// parked and parkTo are where a bridge from here parks; seed prepares the group of the
	// consumers that a bridge to here is for, and made makes the topic without that group. Each is
	// nil where the demo moves nothing in that direction.
	parked, made transport.Source
	parkTo       string
	seed         workflow.Seed
	// lookahead is container.Config.Lookahead; 0 = its default.
	lookahead int
	// cut breaks every connection of this process to the broker and returns how many.
	cut func() int
	// remove deletes the queues.
	remove func(ctx context.Context) error
	// stop ends an embedded server.
	stop func() error
}

// names of the queues, of their own for each seed so that several can run.
func queueNames(seed uint64) (orders, dead string) {
	orders = fmt.Sprintf("longshore-demo-%d-orders", seed)
	return orders, orders + ".dlq"
}

// builder makes a rig without contacting a broker at an address.
type builder struct {
	name  string
	build func(cfg Config) (*rig, error)
}

// builders lists the brokers in the order in which they are shown.
func builders() []builder {
	return []builder{{"memory", memoryRig}, {"rabbitmq", rabbitRig}, {"kafka", kafkaRig}, {"sqs", sqsRig}}
}

func rigs(cfg Config) (built []*rig, err error) {
	for _, b := range builders() {
		wanted := b.name != "memory" // it can be no broker of anybody
		if cfg.Migrate {
			wanted = b.name == "rabbitmq" || b.name == "kafka"
		}
		if cfg.only != nil {
			wanted = slices.Contains(cfg.only, b.name)
		}
		if !wanted {
			continue
		}
		r, err := b.build(cfg)
		if err != nil {
			return nil, errors.Join(err, stopRigs(built))
		}
		built = append(built, r)
	}
	return built, nil
}

func stopRigs(rs []*rig) error {
	var errs []error
	for _, r := range rs {
		if r.stop != nil {
			errs = append(errs, r.stop())
		}
	}
	return errors.Join(errs...)
}
