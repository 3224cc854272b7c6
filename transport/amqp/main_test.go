package amqp_test

import (
	"flag"
	"testing"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
)

// The suites wait most of their time, so more of their checks run at once than there
// are processors; -parallel on the command line wins.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8")
	brokertest.Main(m, brokertest.RabbitMQ)
}
