package telemetry_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/memory"
)

// Calls of consumers and publishers are one metric, with the labels of the conventions.
func TestOperationsAreTimed(t *testing.T) {
	r := newRig(t)
	heard, ok := r.tel.Metrics().(longshore.OperationObserver)
	if !ok {
		t.Fatal("Metrics does not hear of operations")
	}
	for range 2 {
		heard.Operation(longshore.Operation{Transport: "aws_sqs", Source: "orders", Kind: longshore.OperationReceive, Took: time.Second})
	}
	heard.Operation(longshore.Operation{Transport: "aws_sqs", Source: "orders", Kind: longshore.OperationAck, Took: time.Second, Code: longshore.CodeTimeout})
	heard.Operation(longshore.Operation{Transport: "aws_sqs", Source: "orders", Kind: longshore.OperationExtend, Took: time.Second})
	raw, err := r.broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	pub := r.tel.Publisher("memory", raw)
	if err := pub.Publish(t.Context(), "orders", &longshore.Message{}); err != nil {
		t.Fatal(err)
	}
	if err := pub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(r.points(t), func(p string) bool { return !strings.HasPrefix(p, "messaging.client.operation.duration ") })
	slices.Sort(all)
	const name, of = "messaging.client.operation.duration ", "messaging.destination.name=orders messaging.operation.name="
	want := []string{
		name + "error.type=timeout " + of + "ack messaging.operation.type=settle messaging.system=aws_sqs 1",
		name + of + "extend messaging.system=aws_sqs 1",
		name + of + "publish messaging.operation.type=send messaging.system=memory 1",
		name + of + "receive messaging.operation.type=receive messaging.system=aws_sqs 2",
	}
	if !slices.Equal(all, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
}
