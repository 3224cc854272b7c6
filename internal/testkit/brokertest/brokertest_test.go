package brokertest_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m, brokertest.RabbitMQ) }

// attempt stands in for the test that asks for a broker and records its end.
type attempt struct {
	testing.TB
	failed, skipped string
}

type stopped struct{}

func (a *attempt) Helper()                        {}
func (a *attempt) Fatal(args ...any)              { a.failed = strings.TrimSpace(toText(args)); panic(stopped{}) }
func (a *attempt) Fatalf(format string, v ...any) { a.failed = format + toText(v); panic(stopped{}) }
func (a *attempt) Skipf(format string, v ...any)  { a.skipped = format + toText(v); panic(stopped{}) }

func toText(args []any) string {
	var b strings.Builder
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			b.WriteString(v)
		case error:
			b.WriteString(v.Error())
		}
	}
	return b.String()
}

// ask runs f on an attempt until its end.
func ask(t *testing.T, f func(testing.TB)) (a *attempt) {
	t.Helper()
	a = &attempt{TB: t}
	defer func() {
		if r := recover(); r != nil && r != (stopped{}) {
			panic(r)
		}
	}()
	f(a)
	return a
}

func TestAbsentBrokerIsNotRunAndSaysHow(t *testing.T) {
	for variable, f := range map[string]func(testing.TB){
		"AMQP_URL":     func(t testing.TB) { brokertest.AMQP(t) },
		"KAFKA_ADDRS":  func(t testing.TB) { brokertest.Kafka(t) },
		"SQS_ENDPOINT": func(t testing.TB) { brokertest.SQS(t) },
		"PG_DSN":       func(t testing.TB) { brokertest.PG(t) },
		"MARIADB_DSN":  func(t testing.TB) { brokertest.MariaDB(t) },
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "")
			t.Setenv("LONGSHORE_BROKERS", "")
			if a := ask(t, f); !strings.Contains(a.skipped, variable) || a.failed != "" {
				t.Errorf("skipped %q, failed %q; want a skip that names the variable", a.skipped, a.failed)
			}
			t.Setenv("LONGSHORE_BROKERS", "required")
			if a := ask(t, f); !strings.Contains(a.failed, variable) || a.skipped != "" {
				t.Errorf("required: skipped %q, failed %q; want a failure that names the variable", a.skipped, a.failed)
			}
		})
	}
}

func TestBrokerWithoutManagementIsRefusedWithoutItsPassword(t *testing.T) {
	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()
	t.Setenv("AMQP_URL", "amqp://app:s3cret@127.0.0.1:1/")
	for _, management := range []string{strings.Replace(api.URL, "://", "://app:s3cret@", 1), "http://app:s3cret@127.0.0.1:1", "http://app:s3cret@[::1"} {
		t.Setenv("AMQP_MANAGEMENT", management)
		a := ask(t, func(t testing.TB) { brokertest.AMQP(t) })
		if !strings.Contains(a.failed, "AMQP_MANAGEMENT") || strings.Contains(a.failed, "s3cret") {
			t.Errorf("failed with %q; want AMQP_MANAGEMENT named and no password", a.failed)
		}
	}
}

func TestNamesAreUniqueAndSafe(t *testing.T) {
	a, b := brokertest.Name(t, "orders/über.fifo"), brokertest.Name(t, "orders/über.fifo")
	if a == b {
		t.Errorf("twice the same name %q", a)
	}
	if !regexp.MustCompile(`^[a-z0-9-]{10,80}$`).MatchString(a) {
		t.Errorf("unsafe name %q", a)
	}
}

func TestVhostIsOfThisTestAndGoesWithIt(t *testing.T) {
	var url string
	t.Run("inner", func(t *testing.T) {
		url = brokertest.AMQP(t)
		conn, err := amqp091.Dial(url)
		if err != nil {
			t.Fatal(err)
		}
		closed := conn.NotifyClose(make(chan *amqp091.Error, 1))
		if os.Getenv("RABBITMQCTL") == "" {
			_ = conn.Close()
			return
		}
		brokertest.CloseConnections(t, url)
		if reason := <-closed; reason == nil || reason.Code != amqp091.ConnectionForced {
			t.Errorf("closed with %v, want 320", reason)
		}
	})
	if url == "" {
		return // not run, and said so
	}
	if conn, err := amqp091.Dial(url); err == nil {
		_ = conn.Close()
		t.Error("the vhost outlived its test")
	}
}

// A node is broken in every way, and the next test finds it in order.
func TestFaultNodeIsRepairedAfterEachTest(t *testing.T) {
	for _, tc := range []struct {
		name string
		harm func(*brokertest.Node)
	}{
		{"running, but not as it should", func(n *brokertest.Node) {
			n.ConsumerTimeout(time.Second)
			n.MemoryAlarm(true)
			n.ChangePassword("other")
			n.Freeze()
		}},
		{"stopped", func(n *brokertest.Node) { n.StopApp() }},
		{"killed", func(n *brokertest.Node) { n.Kill() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Run("harm", func(t *testing.T) { tc.harm(brokertest.FaultNode(t)) })
			t.Run("after", inOrder)
		})
	}
}

func inOrder(t *testing.T) {
	n := brokertest.FaultNode(t)
	conn, err := amqp091.Dial(n.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if alarms := n.Eval("rabbit_alarm:get_alarms()."); strings.TrimSpace(alarms) != "[]" {
		t.Errorf("alarms left: %s", alarms)
	}
	if timeout := n.Eval("element(2, application:get_env(rabbit, consumer_timeout))."); strings.TrimSpace(timeout) != "1800000" {
		t.Errorf("consumer_timeout left at %s", timeout)
	}
}

// The used node of a cluster is killed; the other has the same vhost and goes on.
func TestClusterOutlivesItsKilledNode(t *testing.T) {
	first, second := brokertest.Cluster(t)
	conn, err := amqp091.Dial(second.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("orders", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	first.Kill()
	if _, err := amqp091.Dial(first.URL); err == nil {
		t.Error("the killed node takes connections")
	}
	if _, err := ch.QueueDeclarePassive("orders", true, false, false, false, nil); err != nil {
		t.Errorf("the queue on the other node: %v", err)
	}
	first.Start()
	again, err := amqp091.Dial(first.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	ch, err = again.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclarePassive("orders", true, false, false, false, nil); err != nil {
		t.Errorf("the queue seen from the node that came back: %v", err)
	}
}
