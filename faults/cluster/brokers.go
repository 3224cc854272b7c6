//go:build unix

package main

import (
	"context"
	"os"
	"strings"

	"github.com/longshore-go/longshore/transport"
)

// addressVariable tells a consuming process where the brokers are.
const addressVariable = "LONGSHORE_JEPSEN_ADDRESS"

// place is the queue, or the topic and the group.
const place = "jepsen"

// broker is what differs between RabbitMQ and Kafka. Producers and the reading of what is left
// use the brokers' plain clients: they judge, and are not judged.
type broker interface {
	address() string                             // of all three, as a source takes it
	source() transport.Source                    // for a consuming process
	prepare(ctx context.Context) error           // makes the place
	faults(n *nodes, a, b *node) []fault         // what the nemesis can do to this broker only
	sender(confirms bool) sender                 // for one key
	memory(ctx context.Context) (float64, error) // bytes that the broker has for the place; 0: it has none
	left(ctx context.Context) ([]string, error)  // ids of messages that the broker still has
}

func newBroker(on string, n *nodes, unsafe bool) broker {
	var ips []string
	for _, one := range n.all {
		ips = append(ips, one.ip)
	}
	if on == "kafka" {
		return kafkaCluster{addrs: strings.Split(strings.Join(ips, ":9092,")+":9092", ",")}
	}
	return rabbitCluster{hosts: ips, unsafe: unsafe}
}

// fromEnvironment is the broker as a consuming process knows it.
func fromEnvironment(on string) broker {
	address := strings.Split(os.Getenv(addressVariable), ",")
	if on == "kafka" {
		return kafkaCluster{addrs: address}
	}
	return rabbitCluster{hosts: address}
}
