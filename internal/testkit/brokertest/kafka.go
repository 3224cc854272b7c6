package brokertest

import (
	"strings"
	"testing"
)

// KafkaNode is a Kafka cluster of one node that a test may break, under the
// conditions of [Node]. Its groups are quick: members beat every 300 ms and are
// dead after 4 s in the consumer protocol, and may ask for 1 s in the classic one.
type KafkaNode struct {
	Addrs []string
	// Login is where one has to log in: app with the password app-secret may do
	// everything, guest with guest-secret nothing, who comes with a token of
	// OAUTHBEARER (not signed) is who it says, until it is renewed every 4 s.
	Login string

	process
}

// FaultKafka returns the second Kafka of this checkout (scripts/brokers start
// kafka-faults), started if need be. One test at a time has it, over all packages
// and processes.
func FaultKafka(t testing.TB) *KafkaNode {
	t.Helper()
	value(t, KafkaNodes)
	n := &KafkaNode{process: take(t, "kafka-faults", "kafka-faults")[0]}
	env := n.environment()
	n.Addrs, n.Login = strings.Split(env[KafkaNodes], ","), env["KAFKA_LOGIN"]
	t.Cleanup(n.repair)
	return n
}
