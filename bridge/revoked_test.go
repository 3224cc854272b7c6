package bridge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
)

// Credentials of one side that are revoked while a route runs hold it. Progress names the side
// and the reason, and once they are valid again the route goes on where it was.
func TestCredentialsThatAreRevoked(t *testing.T) {
	node := brokertest.FaultNode(t)
	for name, side := range map[string]bridge.Side{"of the source": bridge.BySource, "of the target": bridge.ByTarget} {
		t.Run(name, func(t *testing.T) {
			a, b := queueOn(t, node.URL), queueOn(t, brokertest.AMQP(t))
			if side == bridge.ByTarget {
				a, b = b, a
			}
			dir, src := t.TempDir(), source(t, a)
			publish(t, src, 400)
			r := run(t, bridge.Config{From: src, To: source(t, b), Ledger: openLedger(t, dir), Rate: 100, OpenFor: 50 * time.Millisecond})
			until(t, "it moves", func() bool { return r.Stats().Forwarded > 20 })
			r.Container().Pause() // rabbitmqctl takes its time
			node.ChangePassword("another one")
			node.CloseAllConnections()
			r.Container().Resume()
			until(t, "the route says why it is held", func() bool {
				p := r.Progress()
				return p.Limit == side && strings.Contains(p.Failing, "ACCESS_REFUSED")
			})
			node.ChangePassword("guest")
			until(t, "all are moved", func() bool { return verified(t, dir, nil).Confirmed == 400 })
			stop(t, r)
			if v := verified(t, dir, nil); !v.OK() || v.Parked > 0 {
				t.Errorf("%v; missing %v", v, v.Missing)
			}
			arrived(t, b, 400, 100, 0, true)
		})
	}
}
