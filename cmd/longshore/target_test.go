package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// declared starts a server with a queue and returns its TARGET.
func declared(t *testing.T, name string, args amqp091.Table) string {
	t.Helper()
	server := amqptest.New(t)
	declareOn(t, server, name, args)
	return fmt.Sprintf("amqp://guest:guest@%s/?queue=%s", server.Addr, name)
}

func declareOn(t *testing.T, server *amqptest.Server, name string, args amqp091.Table) {
	t.Helper()
	conn, err := amqp091.Dial(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err == nil {
		_, err = ch.QueueDeclare(name, true, false, false, false, args)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPublishAndPeekOnRabbitMQ(t *testing.T) {
	target := declared(t, "orders", amqp091.Table{"x-queue-type": "quorum"})
	w := world{in: `{"id":"o-17"}`}
	got := w.run(t, "publish", target, "--key", "c-91", "--content-type", "application/json")
	if got.code != 0 || !strings.HasPrefix(got.out, `published 1 message to rabbitmq queue "orders" at 127.0.0.1:`) ||
		!strings.HasSuffix(got.out, ` (RabbitMQ 3.10.8, cluster "amqptest")`+"\n") {
		t.Fatalf("%+v", got)
	}
	got = w.run(t, "peek", target)
	if got.code != 1 || !strings.Contains(got.err, "error[unsupported]: browse rabbitmq queue \"orders\": ") || !strings.HasSuffix(got.err, "help: --force looks anyway\n") {
		t.Errorf("without --force: %+v", got)
	}
	for range 2 {
		if got = w.run(t, "peek", target, "--force", "--format", "%k %v"); got.code != 0 || got.out != "c-91 {\"id\":\"o-17\"}\n" {
			t.Errorf("%+v", got)
		}
	}
}

func TestPublishToAQueueThatDoesNotExist(t *testing.T) {
	target := declared(t, "orders", nil)
	w := world{in: "x"}
	got := w.run(t, "publish", target+"-2", "-")
	if got.code != 1 || !strings.HasPrefix(got.err, "error[unroutable]: ") {
		t.Errorf("%+v", got)
	}
}

func TestTargetsThatCannotBe(t *testing.T) {
	for target, c := range map[string]struct {
		code int
		err  string
	}{
		"orders":                        {2, "error[bad-address]: "},
		"mem://orders":                  {2, "error[unsupported]: reach a mem:// queue by a command"},
		"amqp://u:hidden-pw@localhost/": {2, "error[config]: "},
		"amqp://u:hidden-pw@localhost:x/?queue=q": {2, "error[bad-address]: "},
		"amqp://u:hidden-pw@127.0.0.1:9/?queue=q": {6, "error[unreachable]: "},
		"u:hidden-pw@localhost/?queue=q":          {2, "error[bad-address]: "},
	} {
		got := world{}.run(t, "peek", target, "--force", "--timeout", "5s")
		if got.code != c.code || !strings.HasPrefix(got.err, c.err) || !strings.Contains(got.err, "\nhelp: ") && c.code != 2 {
			t.Errorf("%s: %+v", target, got)
		}
		if strings.Contains(got.out+got.err, "hidden-pw") {
			t.Errorf("%s: the password is shown: %s", target, got.err)
		}
	}
}

// What does not exist must not be looked at by force.
func TestPeekNamesWhatIsMissingBeforeTheCost(t *testing.T) {
	got := world{}.run(t, "peek", declared(t, "orders", nil)+"-2")
	if got.code != 1 || !strings.HasPrefix(got.err, "error[not-found]: ") || strings.Contains(got.err, "--force") {
		t.Errorf("%+v", got)
	}
}

func TestPublishToAKafkaThatIsNotThere(t *testing.T) {
	got := world{in: "x"}.run(t, "publish", "kafka://127.0.0.1:9/orders") // no group, no deadline
	if got.code != 6 || !strings.HasPrefix(got.err, `error[unreachable]: publish to kafka topic "orders" at 127.0.0.1:9: `) {
		t.Errorf("%+v", got)
	}
}

func TestVerboseTellsWhatIsDone(t *testing.T) {
	target := declared(t, "orders", nil)
	got := world{in: "x"}.run(t, "publish", target, "-v")
	if got.code != 0 || !strings.Contains(got.err, `publish ended	{"to": "orders", "messages": 1, "took": `) {
		t.Errorf("%+v", got)
	}
	got = world{}.run(t, "peek", target, "-v", "--force")
	if got.code != 0 || !strings.Contains(got.err, `page read	{"source": "rabbitmq queue`) {
		t.Errorf("%+v", got)
	}
}

func TestSQSWithoutCredentialsNamesThem(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials")
	got := world{in: "x"}.run(t, "publish", "sqs://orders?region=eu-west-1&endpoint=http://127.0.0.1:9")
	if got.code != 6 || !strings.HasPrefix(got.err, "error[auth]: ") || !strings.Contains(got.err, "help: check the clock, and the credentials: ") {
		t.Errorf("%+v", got)
	}
}

// Neither to publish nor to look is a group needed.
func TestPublishAndPeekOnKafka(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	target := "kafka://" + strings.Join(c.ListenAddrs(), ",") + "/orders"
	got := world{in: "a"}.run(t, "publish", target, "--key", "k")
	if got.code != 0 || !strings.HasPrefix(got.out, `published 1 message to kafka topic "orders" at 127.0.0.1:`) {
		t.Errorf("%+v", got)
	}
	if got = (world{}).run(t, "peek", target, "--format", "%k %v"); got.code != 0 || got.out != "k a\n" {
		t.Errorf("%+v", got)
	}
	if got = (world{in: "a"}).run(t, "publish", target+"-2"); got.code != 1 || !strings.HasSuffix(got.err, "\nhelp: correct the name, create it\n") {
		t.Errorf("%+v", got)
	}
}

func TestKafkaTargetThatIsAnotherServer(t *testing.T) {
	server := amqptest.New(t)
	got := world{in: "a"}.run(t, "publish", "kafka://"+server.Addr+"/orders", "--timeout", "10s")
	if got.code != 6 || !strings.Contains(got.err, "error[unreachable]: ") || !strings.Contains(got.err, "help: ") {
		t.Errorf("%+v", got)
	}
}

// A source of a container with several is a TARGET by CONTAINER/NAME.
func TestTargetIsOneOfSeveralSources(t *testing.T) {
	target := declared(t, "orders", nil)
	path := filepath.Join(t.TempDir(), "longshore.yaml")
	if err := os.WriteFile(path, []byte("containers: {shop: {sources: {in: \""+target+"\", out: mem://out}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := world{in: "x"}
	if got := w.run(t, "publish", "shop/in", "-", "-c", path); got.code != 0 || !strings.Contains(got.out, `queue "orders"`) {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"shop", "shop/inn"} {
		if got := w.run(t, "publish", name, "-", "-c", path); got.code != 2 || !strings.Contains(got.err, "shop/in") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := w.run(t, "config", "check", "-c", path); got.code != 0 || !strings.Contains(got.out, "2 containers: shop/in, shop/out") {
		t.Errorf("%+v", got)
	}
}
