package kafka_test

import (
	"flag"
	"testing"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
)

// Most of these tests wait most of their time, for heartbeats, sessions and timeouts:
// more of them run at a time than there are processors, unless -parallel says so.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8")
	brokertest.Main(m, brokertest.KafkaNodes)
}
