//go:build !unix

package brokertest

import "testing"

// lock: scripts/brokers needs a Unix.
func lock(t testing.TB, _, _ string) condition {
	t.Helper()
	notRun(t, "scripts/brokers needs Linux")
	return inOrder
}
