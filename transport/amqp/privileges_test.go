package amqp_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// A user with exactly the permissions of docs/how-to/deploy.md runs a container that
// declares, retries with delays and dead-letters.
func TestLeastPrivilegesOnRabbitMQ(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/how-to/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	p := regexp.MustCompile(`set_permissions -p shop orders '(.*)' '(.*)' '(.*)'`).FindStringSubmatch(string(page))
	if p == nil {
		t.Fatal("the page has no permissions")
	}
	name := brokertest.Name(t, "least")
	addr := brokertest.AMQPAccounts(t, name, map[string]string{name + "-all": "a", name: "secret"})
	brokertest.AMQPPermissions(t, name, name, p[1], p[2], p[3])
	run := func(user, password, queue string) (*container.ListenerContainer, error) {
		b := amqp.New("amqp://"+addr+"/"+name, amqp.Config{User: user, Password: transport.Static(password)})
		return container.New(b.Queue(queue, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}}),
			longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return errors.New("fails") }),
			container.Config{DeadLetter: container.DeadLetter{To: "orders.dlq"}, Order: container.Unordered,
				Redelivery: container.Redelivery{MaxAttempts: 3, Backoff: container.Backoff{Initial: 300 * time.Millisecond, Multiplier: 1}}})
	}
	c, err := run(name, "secret", "orders")
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	containertest.PublishMessages(t, c, &longshore.Message{Body: []byte("a")}, &longshore.Message{Body: []byte("b")})
	eventually(t, "both are dead-lettered", func() bool { return c.Stats().DeadLetters[longshore.CodeHandler] == 2 })
	other, err := run(name, "secret", "invoices")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := within(patience)
	defer cancel()
	if err := other.Start(ctx); !errors.Is(err, longshore.CodeForbidden) {
		t.Errorf("another queue: %v", err)
	}
}
