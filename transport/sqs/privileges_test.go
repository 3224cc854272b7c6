package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// A container that retries and dead-letters uses no action that the policy of
// docs/how-to/deploy.md lacks, and the policy has none that is not needed.
func TestLeastPrivilegesOnSQS(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	var policy struct{ Statement []struct{ Action []string } }
	if text == nil || json.Unmarshal(text[1], &policy) != nil || len(policy.Statement) != 2 {
		t.Fatal("the page has no policy")
	}
	var allowed []string
	for _, s := range policy.Statement {
		for _, a := range s.Action {
			allowed = append(allowed, a[len("sqs:"):])
		}
	}
	server := sqstest.New(t)
	server.CreateQueue(t, "orders", nil)
	server.CreateQueue(t, "orders-dlq", nil)
	server.ForgetCalls()
	c, err := container.New(sqs.New(server.Config()).Queue("orders", sqs.QueueConfig{}),
		longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
			if string(d.Body) == "ok" {
				return nil
			}
			return errors.New("fails")
		}),
		container.Config{DeadLetter: container.DeadLetter{To: "orders-dlq"}, Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	containertest.PublishMessages(t, c, &longshore.Message{Body: []byte("ok")}, &longshore.Message{Body: []byte("bad")}) // SendMessage to orders is the test's own
	for end := time.Now().Add(20 * time.Second); c.Stats().DeadLetters[longshore.CodeHandler] == 0 && time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		containertest.WaitIdle(t, c) // the retry may wait at the queue
	}
	used := map[string]bool{}
	for _, call := range server.Calls() {
		action := map[string]string{"SendMessageBatch": "SendMessage", "DeleteMessageBatch": "DeleteMessage", "ChangeMessageVisibilityBatch": "ChangeMessageVisibility"}[call.Action]
		if action == "" {
			action = call.Action
		}
		if used[action] = true; !slices.Contains(allowed, action) {
			t.Errorf("%s is used and not allowed", action)
		}
	}
	if c.Stats().DeadLetters[longshore.CodeHandler] != 1 || !used["DeleteMessage"] || !used["SendMessage"] {
		t.Errorf("%v, used %v", c.Stats().DeadLetters, used)
	}
}
