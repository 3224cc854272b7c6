package main

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const table = `works             attempts [1], effects 1
packed            attempts [1], effects 1
fails twice       attempts [1 2 3], effects 1
always fails      attempts [1 2 3], effects 0, dead: handler
comes back later  attempts [1 2], effects 1
released          attempts [1 1], effects 1
rejected          attempts [1], effects 0, dead: handler
no such account   attempts [1], effects 0, dead: handler
discarded         attempts [1], effects 0
panics once       attempts [1 2], effects 1
not JSON          attempts [1], effects 0, dead: undecodable
sent twice        attempts [1], effects 1
the same on 3 brokers
`

func TestTheSameOnThreeEmbeddedBrokers(t *testing.T) { same(t, where{run: "embedded"}) }

func TestTheSameOnThreeRealBrokers(t *testing.T) {
	w := where{amqp: brokertest.AMQP(t), kafka: strings.Join(brokertest.Kafka(t), ","), sqs: brokertest.SQS(t), run: brokertest.Name(t, "")}
	same(t, w)
}

func same(t *testing.T, w where) {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), &out, w); err != nil {
		t.Fatal(err)
	}
	if out.String() != table {
		t.Errorf("got\n%s\nwant\n%s", out.String(), table)
	}
}
