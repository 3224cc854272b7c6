package kafka_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// A user with exactly the ACLs of docs/how-to/deploy.md consumes, retries and dead-letters.
func leastPrivileges(t *testing.T, n *brokertest.KafkaNode, p kafka.Protocol) {
	page, err := os.ReadFile("../../docs/how-to/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`--operation (\w+) --(topic|group) (\S+)`).FindAllStringSubmatch(string(page), -1)
	if len(lines) != 3 {
		t.Fatalf("the page has %d ACLs", len(lines))
	}
	c, b := loggedIn(t, n, plain("guest", "guest-secret"))
	dead := realCluster(t, n.Addrs, 1).topic
	names := map[string]string{"orders": c.topic, "billing": c.topic, "orders.dlt": dead}
	adm := admin(t, n.Addrs)
	for _, l := range lines {
		op, err := kmsg.ParseACLOperation(l[1])
		if err != nil || names[l[3]] == "" {
			t.Fatalf("%v: %v", l, err)
		}
		acl := kadm.NewACLs().Allow("User:guest").AllowHosts("*").Operations(op).ResourcePatternType(kadm.ACLPatternLiteral)
		if l[2] == "topic" {
			acl = acl.Topics(names[l[3]])
		} else {
			acl = acl.Groups(names[l[3]])
		}
		if _, err := adm.CreateACLs(t.Context(), acl); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = adm.DeleteACLs(context.Background(), acl) })
	}
	run, err := container.New(b.Group(c.topic, []string{c.topic}, kafka.GroupConfig{Protocol: p}),
		longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return errors.New("fails") }),
		container.Config{DeadLetter: container.DeadLetter{To: dead}, WaitForBroker: true, Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: 100 * time.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, run)
	c.produce(0, 3, 1, 0)
	eventually(t, "all are dead-lettered", func() bool { return run.Stats().DeadLetters[longshore.CodeHandler] == 3 })
}
