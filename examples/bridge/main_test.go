package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// F-M: a service under load is cut over, turned back halfway and cut over again: every order has
// one effect, and nothing stands still for more than 5 s.
func TestMoveOnEmbeddedBrokers(t *testing.T) {
	moved(t, where{name: "orders", rate: 200, work: 500 * time.Millisecond})
}

func TestMoveOnRealBrokers(t *testing.T) {
	work := time.Second
	if long := os.Getenv("LONGSHORE_MOVE"); long != "" { // make move-bridge
		var err error
		if work, err = time.ParseDuration(long); err != nil {
			t.Fatal(err)
		}
	}
	moved(t, where{amqp: brokertest.AMQP(t), kafka: brokertest.Kafka(t), name: brokertest.Name(t, "move"), rate: 500, work: work})
}

func moved(t *testing.T, w where) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), &out, w)
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"1/5 returning", "5/5 quiet-back", "6/6 quiet", "without effect 0", "missing 0, extra 0, changed 0"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("it does not say %q", line)
		}
	}
}
