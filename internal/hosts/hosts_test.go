package hosts

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "sqs.localhost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "": false, "10.0.0.1": false, "0.0.0.0": false, "::": false,
		"rabbit.internal": false, "localhost.example.com": false, "127.0.0.1.example.com": false,
	} {
		if Loopback(host) != want {
			t.Errorf("%q: %t", host, !want)
		}
	}
}
