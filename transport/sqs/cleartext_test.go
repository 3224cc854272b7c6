package sqs_test

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-N26: a remote endpoint without TLS is named when a queue is opened, without anything
// that may be secret. One on this machine, or with TLS, is not.
func TestRemoteEndpointWithoutTLSIsNamed(t *testing.T) {
	for endpoint, warned := range map[string]bool{
		"http://queues.example:9324":  true,
		"http://10.1.2.3:9324/path":   true,
		"https://queues.example:9324": false,
		"http://127.0.0.1:9324":       false,
		"http://[::1]:9324":           false,
		"http://localhost:9324":       false,
	} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, "orders", nil)
			cfg := s.Config() // its HTTP client reaches the server under any address
			cfg.Endpoint = endpoint
			var w watcher
			c := open(t, sqs.New(cfg).Queue("orders", sqs.QueueConfig{}), &w)
			must(t, c.Close(t.Context()))
			got := false
			for _, e := range w.seen() {
				if strings.Contains(e.Text, "without TLS") {
					got = true
					if strings.Contains(e.Text, "path") {
						t.Errorf("it shows more than the host: %s", e.Text)
					}
				}
			}
			if got != warned {
				t.Errorf("%s: warned %v, want %v", endpoint, got, warned)
			}
		})
	}
}
