package dlq_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
	"github.com/longshore-go/longshore/transport/urls"
)

// Most of these tests wait most of their time, for leases and groups; -parallel on the
// command line wins.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4")
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} { // a local server takes any
		if os.Getenv(name) == "" {
			_ = os.Setenv(name, "x") // also for the process that is killed
		}
	}
	brokertest.Main(m, brokertest.RabbitMQ, brokertest.KafkaNodes, brokertest.SQSServer)
}

// patience is for a busy machine.
const patience = time.Minute

// site is one broker with a queue or topic and its dead letters, as URLs.
type site struct {
	name, orders, dead string
	self               string // the destination of orders
	keeps              bool   // a log
}

func onBrokers(t *testing.T, f func(t *testing.T, s site)) {
	for name, make := range map[string]func(t *testing.T) site{
		"amqptest": func(t *testing.T) site { return rabbit(t, amqptest.New(t).URL) },
		"rabbitmq": func(t *testing.T) site { return rabbit(t, brokertest.AMQP(t)) },
		"kfake": func(t *testing.T) site {
			c, err := kfake.NewCluster(kfake.NumBrokers(1))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			return kafkaSite(t, c.ListenAddrs())
		},
		"kafka":     func(t *testing.T) site { return kafkaSite(t, brokertest.Kafka(t)) },
		"sqstest":   func(t *testing.T) site { return sqsSite(t, sqstest.New(t).URL) },
		"elasticmq": func(t *testing.T) site { return sqsSite(t, brokertest.SQS(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, make(t))
		})
	}
}

func rabbit(t *testing.T, broker string) site {
	t.Helper()
	conn, err := amqp091.Dial(broker)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"orders", "orders.dlq"} {
		if _, err := ch.QueueDeclare(q, true, false, false, false, amqp091.Table{"x-queue-type": "quorum"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return site{name: "rabbitmq", orders: broker + "?queue=orders", dead: broker + "?queue=orders.dlq", self: "orders"}
}

func kafkaSite(t *testing.T, addrs []string) site {
	t.Helper()
	orders := brokertest.Name(t, "dlq-orders")
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	resp, err := adm.CreateTopics(t.Context(), 2, 1, nil, orders, orders+".dlq")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resp {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C { // created is not yet known to those who publish
		topics, err := adm.ListTopics(t.Context(), orders, orders+".dlq")
		if err == nil && topics.Error() == nil && len(topics) == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the topics are not there: %v %v", err, topics.Error())
		}
	}
	at := "kafka://" + strings.Join(addrs, ",") + "/" + orders
	return site{name: "kafka", orders: at + "?group=" + orders, dead: at + ".dlq", self: orders, keeps: true}
}

func sqsSite(t *testing.T, endpoint string) site {
	t.Helper()
	orders := brokertest.Name(t, "dlq-orders")
	s := site{name: "sqs", self: orders}
	s.orders = "sqs://" + orders + "?region=eu-west-1&declare=true&endpoint=" + url.QueryEscape(endpoint)
	// Short: what a killed process held comes back only then.
	s.dead = strings.Replace(s.orders, orders, orders+"-dlq", 1) + "&visibility=5s"
	for _, q := range []string{s.orders, s.dead} { // declares it
		c, err := s.source(t, q, urls.Options{}).Open(t.Context(), transport.OpenOptions{Window: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s site) source(t *testing.T, raw string, o urls.Options) transport.Source {
	t.Helper()
	src, err := o.Source(raw)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func (s site) letters(t *testing.T) transport.Source {
	t.Helper()
	return s.source(t, s.dead, urls.Options{DeadLetters: true, NoConsumer: true, BrowseCounts: true})
}

// die publishes dead letters numbered from..to, the odd ones of a panic, with a key
// of their tens so that order can be seen.
func (s site) die(t *testing.T, from, to int) {
	t.Helper()
	pub, self, err := s.letters(t).(transport.Outlet).Publisher(t.Context()) //nolint:errcheck // all of ours are
	if err != nil {
		t.Fatal(err)
	}
	var msgs []*longshore.Message
	for i := from; i <= to; i++ {
		reason := "panic"
		if i%2 == 0 {
			reason = "handler"
		}
		msgs = append(msgs, &longshore.Message{Key: []byte(fmt.Sprint("k", i%3)), Body: []byte(fmt.Sprint(i)), ContentType: "text/plain", CorrelationID: "c", Headers: longshore.Headers{
			{Name: longshore.HeaderID, Value: fmt.Sprint("id-", i)}, {Name: "tenant", Value: "t-1"}, {Name: "longshore-dead-reason", Value: reason},
			{Name: "longshore-dead-source", Value: s.self}, {Name: "longshore-dead-attempts", Value: int64(5)}, {Name: "longshore-dead-at", Value: time.Now().Format(time.RFC3339Nano)}}})
	}
	if err := errors.Join(pub.Publish(t.Context(), self, msgs...), pub.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// take consumes from orders until enough says so, and a little longer.
func (s site) take(t *testing.T, each func(*longshore.Delivery), enough func() bool) {
	t.Helper()
	c, err := s.source(t, s.orders, urls.Options{}).Open(t.Context(), transport.OpenOptions{Window: 100, MaxWindow: 100})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		wait := time.Until(deadline)
		if enough() {
			wait = 500 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		ds, err := c.Receive(ctx, 100)
		cancel()
		if err != nil {
			break
		}
		for _, d := range ds {
			if err := d.Ack(t.Context()); err != nil {
				t.Error(err)
			}
			each(d)
		}
	}
	if err := errors.Join(c.Flush(t.Context()), c.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if !enough() {
		t.Error("not all came")
	}
}

func (s site) replay(t *testing.T, j dlq.Job) dlq.Result {
	t.Helper()
	j.Source, j.Quiet = s.letters(t), 1500*time.Millisecond
	res, err := dlq.Replay(t.Context(), j)
	if err != nil {
		t.Fatal(res, err)
	}
	return res
}

// see looks until want are left: on SQS what was given back may take a moment.
func (s site) see(t *testing.T, want int) (open, replayed int) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		open, replayed = s.look(t)
		if open == want || time.Now().After(deadline) {
			return open, replayed
		}
	}
}

// back waits on SQS until what the killed process held can be received again. It only
// looks: a poll that is given up may still be served, and hide what it was given. What
// it had sent and not yet deleted comes back too, so it takes the whole visibility
// timeout, however many are there before.
func (s site) back(t *testing.T, least int) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for s.name == "sqs" {
		<-tick.C
		if time.Since(began) < 6*time.Second { // visibility=5s
			continue
		}
		if open, _ := s.look(t); open >= least || time.Since(began) > patience {
			return
		}
	}
}

func (s site) look(t *testing.T) (open, replayed int) {
	t.Helper()
	_, err := dlq.Look(t.Context(), s.letters(t), 1000, func(l dlq.Letter) bool {
		if l.Replayed {
			replayed++
		} else {
			open++
		}
		if l.Facts.Who != "longshore" || l.Facts.To != s.self || l.Facts.Attempts != 5 || !strings.HasPrefix(dlq.ID(l.Delivery), "id-") {
			t.Errorf("%+v %s", l.Facts, dlq.ID(l.Delivery))
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return open, replayed
}

func TestReplayOnEveryBroker(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(t *testing.T, s site) {
		s.die(t, 1, 12)
		if open, _ := s.see(t, 12); open != 12 {
			t.Fatalf("%d of 12 dead letters are seen", open)
		}
		panics := dlq.Filter{Reason: "panic"}
		if res := s.replay(t, dlq.Job{Filter: panics}); res.Done != 6 || res.Failed+res.Unknown+res.Open != 0 {
			t.Fatalf("%+v", res)
		}
		var ids []string
		s.take(t, func(d *longshore.Delivery) {
			ids = append(ids, d.Headers.String(longshore.HeaderID))
			if n, _ := d.Headers.Int("longshore-dead-replays"); n != 1 || d.Headers.Has("longshore-dead-reason") || d.Headers.String("tenant") != "t-1" ||
				d.CorrelationID != "c" || d.ContentType != "text/plain" || d.Attempt != 1 || len(d.Key) != 2 {
				t.Errorf("%+v", d.Message)
			}
		}, func() bool { return len(ids) >= 6 })
		slices.Sort(ids)
		if got := fmt.Sprint(ids); got != "[id-1 id-11 id-3 id-5 id-7 id-9]" {
			t.Errorf("replayed %s", got)
		}
		if open, replayed := s.see(t, 6); open != 6 || s.keeps != (replayed == 6) {
			t.Errorf("%d are left, %d replayed", open, replayed)
		}
		if res := s.replay(t, dlq.Job{Filter: panics}); res.Done != 0 {
			t.Errorf("a second time: %+v", res)
		}
		if res := s.replay(t, dlq.Job{Limit: 2}); res.Done != 2 {
			t.Errorf("two: %+v", res)
		}
		if open, _ := s.see(t, 4); open != 4 {
			t.Errorf("%d are left", open)
		}
		res, err := dlq.Purge(t.Context(), dlq.Job{Source: s.letters(t), Quiet: 1500 * time.Millisecond})
		if err != nil || res.Done != 4 && !s.keeps || s.keeps && res.Done != 12 {
			t.Errorf("%+v %v", res, err)
		}
		if open, replayed := s.look(t); open+replayed != 0 {
			t.Errorf("%d and %d are left after all was removed", open, replayed)
		}
	})
}

// killed is the variable that makes this test binary a replay that is to be killed.
const killed = "LONGSHORE_TEST_REPLAY"

// The rate gives whoever is to kill it seconds, also on a busy machine: what is sent is
// seen late there.
const (
	killedBatch = 10
	killedTotal = 200
	killedRate  = 40
	killedSeen  = 15
)

func TestReplayThatIsToBeKilled(t *testing.T) {
	raw := os.Getenv(killed)
	if raw == "" {
		return // of the test below
	}
	src, err := urls.Options{DeadLetters: true, NoConsumer: true}.Source(raw)
	if err != nil {
		t.Fatal(err)
	}
	res, err := dlq.Replay(t.Context(), dlq.Job{Source: src, Batch: killedBatch, Rate: killedRate})
	t.Log(res, err)
}

// kill -9 in the middle of a replay: nothing is lost, and at most one batch is sent
// twice.
func TestKilledReplay(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(t *testing.T, s site) {
		s.die(t, 1, killedTotal)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReplayThatIsToBeKilled$") //nolint:gosec // this very binary
		cmd.Env = append(os.Environ(), killed+"="+s.dead)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		total := 0
		dead := false
		count := func(d *longshore.Delivery) {
			seen[d.Headers.String(longshore.HeaderID)]++
			total++
			if total >= killedSeen && !dead {
				dead = true
				_ = cmd.Process.Kill()
			}
		}
		s.take(t, count, func() bool { return dead })
		_ = cmd.Wait() // it was killed
		first := total
		if first >= killedTotal {
			t.Fatalf("%d were replayed before the kill", first)
		}
		s.back(t, killedTotal-first)
		res := s.replay(t, dlq.Job{Batch: killedBatch})
		s.take(t, count, func() bool { return len(seen) >= killedTotal })
		if len(seen) != killedTotal || total > killedTotal+killedBatch {
			t.Errorf("%d of %d arrived, %d in all; before the kill %d, then %+v", len(seen), killedTotal, total, first, res)
		}
		if open, _ := s.look(t); open != 0 {
			t.Errorf("%d are left", open)
		}
	})
}
