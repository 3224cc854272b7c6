package sqs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
)

// refuses wants the words of both settings and a hint, all in one error.
func refuses(t *testing.T, name string, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), "; ") {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q is not in: %v", name, w, err)
		}
	}
}

func checked(b *sqs.Broker, queue string, cfg sqs.QueueConfig) error {
	return b.Queue(queue, cfg).(transport.Checker).Check() //nolint:errcheck // it is one
}

// F-K04: settings that exclude each other are refused before anything is called; both
// are named, with what to do.
func TestSettingsThatExcludeEachOther(t *testing.T) {
	b := sqs.New(sqs.Config{Region: "eu-west-1"})
	const dead = `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:1:NAME","maxReceiveCount":3}`
	to := func(name string) string { return strings.Replace(dead, "NAME", name, 1) }
	type attributes = map[string]string
	for name, c := range map[string]struct {
		queue string
		attrs attributes
		words []string // none: it is taken
	}{
		"deduplication on standard": {"orders", attributes{"ContentBasedDeduplication": "true"}, []string{"ContentBasedDeduplication", "a standard queue", `"orders.fifo"`}},
		"by URL":                    {"https://sqs.eu-west-1.amazonaws.com/1/orders", attributes{"DeduplicationScope": "queue"}, []string{"DeduplicationScope", "a standard queue"}},
		"throughput on standard":    {"orders", attributes{"FifoThroughputLimit": "perQueue"}, []string{"FifoThroughputLimit", "a standard queue"}},
		"deduplication on FIFO":     {"orders.fifo", attributes{"ContentBasedDeduplication": "true"}, nil},
		"throughput without scope":  {"orders.fifo", attributes{"FifoThroughputLimit": "perMessageGroupId"}, []string{"FifoThroughputLimit perMessageGroupId", "DeduplicationScope"}},
		"throughput with scope":     {"orders.fifo", attributes{"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "messageGroup"}, nil},
		"two keys":                  {"orders", attributes{"KmsMasterKeyId": "alias/a", "SqsManagedSseEnabled": "true"}, []string{"KmsMasterKeyId", "SqsManagedSseEnabled"}},
		"one key":                   {"orders", attributes{"KmsMasterKeyId": "alias/a", "SqsManagedSseEnabled": "false"}, nil},
		"redrive to itself":         {"orders", attributes{"RedrivePolicy": to("orders")}, []string{"RedrivePolicy", "own queue"}},
		"FIFO from standard":        {"orders", attributes{"RedrivePolicy": to("dead.fifo")}, []string{`"dead.fifo"`, `"orders"`}},
		"standard from FIFO":        {"orders.fifo", attributes{"RedrivePolicy": to("dead")}, []string{`"dead"`, `"orders.fifo"`}},
		"FIFO from FIFO":            {"orders.fifo", attributes{"RedrivePolicy": to("dead.fifo")}, nil},
		"a policy that is none":     {"orders", attributes{"RedrivePolicy": "x"}, nil},
	} {
		err := checked(b, c.queue, sqs.QueueConfig{Declare: sqs.Declare{Attributes: c.attrs}})
		if c.words != nil {
			refuses(t, name, err, c.words...)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := checked(sqs.New(sqs.Config{Endpoint: "nowhere"}), "orders", sqs.QueueConfig{VisibilityTimeout: time.Millisecond, Declare: sqs.Declare{Attributes: attributes{"FifoQueue": "true", "DeduplicationScope": "queue"}}})
	refuses(t, "all at once", err, "Endpoint", "VisibilityTimeout", "FifoQueue", "DeduplicationScope")
}

// F-K04: dead letters that would come back to the queue are refused by New.
func TestDeadLettersDoNotComeHere(t *testing.T) {
	b := sqs.New(sqs.Config{Region: "eu-west-1"})
	for queue, to := range map[string]string{
		"orders": "orders", "https://sqs.eu-west-1.amazonaws.com/1/orders": "orders", "arn:aws:sqs:eu-west-1:1:orders": "arn:aws:sqs:eu-west-1:1:orders",
		"orders.fifo": "orders.fifo", "refunds": "orders.dlq",
	} {
		_, err := container.New(b.Queue(queue, sqs.QueueConfig{}), longshore.HandlerFunc(nil), container.Config{DeadLetter: container.DeadLetter{To: to}})
		refuses(t, queue, err, to, "DeadLetter.To")
	}
	for queue, to := range map[string]string{
		"orders": "orders-dlq", "orders.fifo": "orders", "arn:aws:sqs:eu-west-1:1:orders": "arn:aws:sqs:eu-west-1:2:orders",
	} {
		if _, err := container.New(b.Queue(queue, sqs.QueueConfig{}), longshore.HandlerFunc(nil), container.Config{DeadLetter: container.DeadLetter{To: to}}); err != nil {
			t.Errorf("%s to %s: %v", queue, to, err)
		}
	}
}
