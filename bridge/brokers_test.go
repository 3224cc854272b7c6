package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
	"github.com/longshore-go/longshore/transport/urls"
)

// broker makes places: a URL each, of a queue or topic that exists and is empty.
type broker struct {
	name  string
	place func(t *testing.T) string
}

func embedded(t *testing.T) []broker {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	rabbit, queues := amqptest.New(t).URL, sqstest.New(t).URL
	return []broker{
		{"rabbitmq", func(t *testing.T) string { return queueOn(t, rabbit) }},
		{"kafka", func(t *testing.T) string { return topicOn(t, cluster.ListenAddrs()) }},
		{"sqs", func(t *testing.T) string { return sqsOn(queues, brokertest.Name(t, "bridge")) }},
	}
}

func real(t *testing.T) []broker { //nolint:predeclared // there is no complex number here
	rabbit, kafkas, queues := brokertest.AMQP(t), brokertest.Kafka(t), brokertest.SQS(t)
	return []broker{
		{"rabbitmq", func(t *testing.T) string { return queueOn(t, rabbit) }},
		{"kafka", func(t *testing.T) string { return topicOn(t, kafkas) }},
		{"sqs", func(t *testing.T) string { return sqsOn(queues, brokertest.Name(t, "bridge")) }},
	}
}

func queueOn(t *testing.T, broker string) string {
	t.Helper()
	name := brokertest.Name(t, "bridge")
	conn, err := amqp091.Dial(broker)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{name, name + ".parked"} {
		if _, err := ch.QueueDeclare(q, true, false, false, false, amqp091.Table{"x-queue-type": "quorum"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return broker + "?queue=" + name
}

func topicOn(t *testing.T, addrs []string) string {
	t.Helper()
	name := brokertest.Name(t, "bridge")
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	resp, err := adm.CreateTopics(t.Context(), 3, 1, nil, name, name+".parked")
	if err != nil || resp.Error() != nil {
		t.Fatal(err, resp.Error())
	}
	until(t, "the topics are known", func() bool {
		topics, err := adm.ListTopics(t.Context(), name, name+".parked")
		return err == nil && topics.Error() == nil && len(topics) == 2
	})
	return "kafka://" + strings.Join(addrs, ",") + "/" + name + "?group=" + name
}

// sqsOn is short of patience: what a killed process held comes back only after the lease.
func sqsOn(endpoint, name string) string {
	return "sqs://" + name + "?region=eu-west-1&declare=true&visibility=5s&endpoint=" + url.QueryEscape(endpoint)
}

// source opens Kafka groups with a short session: a killed member keeps its partitions for it.
func source(t *testing.T, raw string) transport.Source {
	t.Helper()
	at, behindProxy := strings.CutPrefix(raw, proxied)
	if direct, ok := strings.CutPrefix(at, "kafka://"); ok || behindProxy {
		addrs, rest, _ := strings.Cut(direct, "/")
		topic, group, _ := strings.Cut(rest, "?group=")
		var cfg kafka.Config
		if behindProxy {
			cfg.Options = []kgo.Opt{dialOnly(addrs)}
		}
		return kafka.New(strings.Split(addrs, ","), cfg).Group(group, []string{topic}, kafka.GroupConfig{SessionTimeout: 6 * time.Second})
	}
	s, err := urls.Source(raw)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// declared opens a place once, which makes queues that do not exist yet.
func declared(t *testing.T, raw string) transport.Source {
	t.Helper()
	s := source(t, raw)
	if !strings.HasPrefix(raw, "sqs:") {
		return s
	}
	c, err := s.Open(t.Context(), transport.OpenOptions{Window: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// take consumes from a place until enough says so, and a little longer for what is too many.
func take(t *testing.T, raw string, each func(*longshore.Delivery), enough func() bool) {
	t.Helper()
	c, err := source(t, raw).Open(t.Context(), transport.OpenOptions{Window: 100, MaxWindow: 100})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		wait := time.Until(deadline)
		if enough() {
			wait = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		ds, err := c.Receive(ctx, 100)
		cancel()
		if err != nil {
			break
		}
		for _, d := range ds {
			each(d)
			if err := d.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	if err := errors.Join(c.Flush(t.Context()), c.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if !enough() {
		t.Error("not all came")
	}
}

// pairs runs f for each directed pair of brokers.
func pairs(t *testing.T, f func(t *testing.T, from, to broker)) {
	for name, make := range map[string]func(*testing.T) []broker{"embedded": embedded, "real": real} {
		t.Run(name, func(t *testing.T) {
			all := make(t)
			for _, from := range all {
				for _, to := range all {
					t.Run(from.name+" to "+to.name, func(t *testing.T) {
						t.Parallel()
						f(t, from, to)
					})
				}
			}
		})
	}
}

// everything is a message with every property that the brokers carry.
func everything() *longshore.Message {
	return &longshore.Message{ID: "m-1", Key: []byte("customer 7\x00"), Body: []byte{0, 1, 254, 255}, ContentType: "application/json", ContentEncoding: "identity",
		Type: "order.placed", CorrelationID: "corr", ReplyTo: "answers", AppID: "shop", Timestamp: time.Now().Add(-time.Minute).Truncate(time.Second), Expiration: time.Hour,
		Priority: 4, DeliveryMode: 1,
		Headers: longshore.Headers{{Name: "text", Value: "äöü"}, {Name: "bytes", Value: []byte{0, 255}}, {Name: "yes", Value: true}, {Name: "small", Value: int8(-3)},
			{Name: "large", Value: int64(1 << 40)}, {Name: "double", Value: 1.5}, {Name: "money", Value: longshore.Decimal{Scale: 2, Value: 1250}},
			{Name: "at", Value: time.Unix(1_600_000_000, 0)}, {Name: "nothing", Value: nil}, {Name: "list", Value: []any{"a", int32(2)}},
			{Name: "table", Value: longshore.Headers{{Name: "inner", Value: "v"}}}, {Name: "text", Value: "again"}}}
}

// F-M05: every property arrives, for each pair of brokers, and so it does over all of them and
// back. Headers that count failures do not, and a dead letter does not expire again.
func TestPropertiesSurviveTheCrossing(t *testing.T) {
	pairs(t, func(t *testing.T, from, to broker) {
		a, b := from.place(t), to.place(t)
		src, dst := declared(t, a), declared(t, b)
		dir := t.TempDir()
		r := run(t, bridge.Config{From: src, To: dst, Ledger: openLedger(t, dir), Identity: bridge.ByMessageID})
		dead := everything()
		dead.ID = "m-2"
		dead.Headers = append(dead.Headers, longshore.Header{Name: container.HeaderDeadReason, Value: "panic"})
		counted := everything()
		counted.ID = "m-3"
		counted.Headers = append(counted.Headers, longshore.Header{Name: "x-delivery-count", Value: int64(4)})
		whole := everything()
		put(t, src, whole.Clone(), dead, counted, &longshore.Message{ID: "m-4", Body: []byte{}}, &longshore.Message{ID: "m-5", Body: []byte("5"), Key: []byte{}})
		until(t, "all are moved", func() bool { return r.Stats().Forwarded == 5 })
		got := map[string]*longshore.Message{}
		take(t, b, func(d *longshore.Delivery) { got[d.Headers.String(longshore.HeaderID)] = d.Received().Clone() }, func() bool { return len(got) == 5 })
		if len(got) != 5 {
			t.Fatalf("%d arrived", len(got))
		}
		same(t, whole, got["m-1"])
		if why := got["m-2"].Headers.String(container.HeaderDeadReason); why != "panic" {
			t.Errorf("the reason of a dead letter: %q", why)
		}
		if got["m-3"].Headers.Has("x-delivery-count") {
			t.Error("a count of failures came along")
		}
		if m := got["m-4"]; m.Body == nil || len(m.Body) != 0 {
			t.Errorf("an empty body is %v", m.Body)
		}
		stop(t, r)
		if v := verified(t, dir, nil); !v.OK() || v.Confirmed != 5 {
			t.Errorf("%v", v)
		}
	})
}

// same compares what was sent with what arrived.
func same(t *testing.T, want, got *longshore.Message) {
	t.Helper()
	show := func(m *longshore.Message) string {
		var b strings.Builder
		fmt.Fprintf(&b, "%q %v %s %s %s %s %s %s %d %v %d %d", m.Key, m.Body, m.ContentType, m.ContentEncoding, m.Type, m.CorrelationID, m.ReplyTo, m.AppID,
			m.Timestamp.Unix(), m.Expiration, m.Priority, m.DeliveryMode)
		for _, h := range m.Headers {
			if strings.HasPrefix(h.Name, "longshore-") {
				continue
			}
			if at, ok := h.Value.(time.Time); ok {
				h.Value = at.Unix()
			}
			fmt.Fprintf(&b, " %s=%T:%v", h.Name, h.Value, h.Value)
		}
		return b.String()
	}
	if w, g := show(want), show(got); w != g {
		t.Errorf("\n got %s\nwant %s", g, w)
	}
}

// F-M04: a message that a real publisher refuses whenever it is tried is parked with its
// reason after its attempts, appears in the ledger, and holds no other key up.
func TestRefusedMessagesHoldNobodyUp(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"embedded": func(t *testing.T) string { return queueOn(t, amqptest.New(t).URL) },
		"real":     func(t *testing.T) string { return queueOn(t, brokertest.AMQP(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := memory.New(memory.Config{Name: "source"})
			from, dir := b.Queue("orders", memory.QueueConfig{}), t.TempDir()
			r := run(t, bridge.Config{From: from, To: source(t, url(t)), Ledger: openLedger(t, dir),
				Container: container.Config{Redelivery: container.Redelivery{MaxAttempts: 3, Backoff: container.Backoff{Initial: time.Millisecond}}}})
			msgs := number(100, "k")
			msgs[7].Type = strings.Repeat("x", 300) // AMQP takes 255 bytes
			put(t, from, msgs...)
			parked := b.Queue("orders.parked", memory.QueueConfig{})
			b.Declare("orders.parked")
			until(t, "all are moved or parked", func() bool {
				s := r.Stats()
				return s.Forwarded+s.Parked == 100 && len(look(t, parked)) == int(s.Parked)
			})
			first := look(t, parked)[0]
			if string(first.Body) != "7" || first.Headers.String(container.HeaderDeadReason) != string(longshore.CodeRefused) {
				t.Errorf("parked first: %s, %v", first.Body, first.Headers)
			}
			for _, d := range look(t, parked) {
				if string(d.Key) != string(msgs[7].Key) {
					t.Errorf("message %s of another key is parked", d.Body)
				}
			}
			stop(t, r)
			if v := verified(t, dir, nil); !v.OK() || int64(v.Parked) != r.Stats().Parked {
				t.Errorf("%v; missing %v", v, v.Missing)
			}
		})
	}
}

const child = "BRIDGE_TEST_CHILD"

// TestRouteThatIsToBeKilled is the process that TestKilledBridgesLoseNothing kills.
func TestRouteThatIsToBeKilled(t *testing.T) {
	raw := os.Getenv(child)
	if raw == "" {
		t.Skip("run by TestKilledBridgesLoseNothing")
	}
	way := strings.Split(raw, "\n")
	ledger, err := bridge.OpenLedger(way[2])
	if err != nil {
		t.Fatal(err)
	}
	r, err := bridge.New(bridge.Config{From: source(t, way[0]), To: source(t, way[1]), Ledger: ledger,
		Container: container.Config{Logger: zap.NewNop(), Workers: container.Workers{Min: 8, Max: 8}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer end()
	if err := r.Start(ctx); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := errors.Join(r.Stop(context.Background()), ledger.Close()); err != nil {
		t.Fatal(err)
	}
}

// F-M06: bridges that are killed lose nothing, repeat at most what was on its way, under one
// identity, and keep the order of each key.
func TestKilledBridgesLoseNothing(t *testing.T) {
	pairs(t, killed)
}

// The same of FIFO queues of SQS, where the order of each group holds at the other end too.
func TestKilledBridgesKeepTheOrderOfFIFOQueues(t *testing.T) {
	pairs := [][2]string{{"sqs-fifo", "sqs-fifo"}, {"sqs-fifo", "rabbitmq"}, {"kafka", "sqs-fifo"}, {"sqs-fifo", "kafka"}, {"rabbitmq", "sqs-fifo"}}
	sides := map[string]func(*testing.T) map[string]broker{"embedded": func(t *testing.T) map[string]broker { return fifo(embedded(t)) }, "real": func(t *testing.T) map[string]broker { return fifo(real(t)) }}
	if os.Getenv("LONGSHORE_BRIDGE_N") == "" { // a lease of 5 s must end after each kill: make soak-bridge has the others
		pairs = pairs[:1]
		delete(sides, "real")
	}
	for side, places := range sides {
		t.Run(side, func(t *testing.T) {
			at := places(t)
			for _, pair := range pairs {
				t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
					t.Parallel()
					killed(t, at[pair[0]], at[pair[1]])
				})
			}
		})
	}
}

// fifo are the brokers by name, with FIFO queues on SQS.
func fifo(brokers []broker) map[string]broker {
	all := map[string]broker{}
	for _, b := range brokers {
		all[b.name] = b
		if b.name == "sqs" {
			all["sqs-fifo"] = broker{"sqs-fifo", func(t *testing.T) string {
				name, rest, _ := strings.Cut(b.place(t), "?")
				return name + ".fifo?" + rest
			}}
		}
	}
	return all
}

// killed moves messages from one place to another through kills of the bridge.
func killed(t *testing.T, from, to broker) {
	messages, kills := size(t, "LONGSHORE_BRIDGE_N", 400), size(t, "LONGSHORE_BRIDGE_KILLS", 2)
	seed := uint64(size(t, "LONGSHORE_BRIDGE_SEED", int(time.Now().UnixNano()&0xffff))) //nolint:gosec // any number will do
	t.Logf("LONGSHORE_BRIDGE_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable, not secret
	a, b := from.place(t), to.place(t)
	src := declared(t, a)
	declared(t, b)
	dir := t.TempDir()
	part := messages / (kills + 1)
	for i := range kills {
		publishMore(t, src, i*part, part)
		killSoon(t, strings.Join([]string{a, b, dir}, "\n"), time.Duration(random.IntN(100))*time.Millisecond, dir)
	}
	publishMore(t, src, kills*part, messages-kills*part)
	ledger := openLedger(t, dir)
	r := run(t, bridge.Config{From: src, To: source(t, b), Ledger: ledger})
	until(t, "the source is empty", func() bool {
		idle, err := r.Container().Idle(t.Context())
		return err == nil && idle && verified(t, dir, nil).Confirmed == messages
	})
	stop(t, r)
	v := verified(t, dir, nil)
	if !v.OK() || v.Anonymous != 0 || v.Parked != 0 {
		t.Errorf("%v; missing %v", v, v.Missing)
	}
	arrived(t, b, messages, kills*32, v.Copies, from.name != "sqs" && to.name != "sqs") // a standard queue of SQS promises no order
	t.Logf("%v", v)
}

// publish puts numbered messages of 20 keys to a place.
func publish(t *testing.T, src transport.Source, n int) {
	t.Helper()
	publishMore(t, src, 0, n)
}

// publishMore puts n more, numbered from first on.
func publishMore(t *testing.T, src transport.Source, first, n int) {
	t.Helper()
	for from := first; from < first+n; from += 100 {
		var msgs []*longshore.Message
		for i := from; i < min(from+100, first+n); i++ {
			msgs = append(msgs, &longshore.Message{ID: fmt.Sprint("m-", i), Key: []byte(fmt.Sprint("k", i%20)), Body: []byte(strconv.Itoa(i))})
		}
		put(t, src, msgs...)
	}
}

// F-M02: three instances of one route move each message once, through a rolling restart by
// SIGTERM and kill -9 in turn.
func TestManyInstancesAreOneTransfer(t *testing.T) {
	messages := size(t, "LONGSHORE_BRIDGE_N", 400)
	pairs(t, func(t *testing.T, from, to broker) {
		a, b := from.place(t), to.place(t)
		src := declared(t, a)
		declared(t, b)
		dir := t.TempDir()
		publish(t, src, messages/2)
		way := strings.Join([]string{a, b, dir}, "\n")
		children := make([]*exec.Cmd, 3)
		for i := range children {
			children[i] = spawn(t, "TestRouteThatIsToBeKilled", child+"="+way)
		}
		confirmed := func() int { return verified(t, dir, nil).Confirmed }
		until(t, "they move", func() bool { return confirmed() > messages/8 })
		kills := 0
		for i, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
			if how == syscall.SIGKILL {
				kills++
			}
			end(t, children[i], how)
			children[i] = spawn(t, "TestRouteThatIsToBeKilled", child+"="+way)
			publishMore(t, src, messages/2+i*messages/6, messages/6)
		}
		all := messages/2 + 3*(messages/6)
		until(t, "all is moved", func() bool { return confirmed() == all })
		for _, c := range children {
			end(t, c, syscall.SIGTERM)
		}
		v := verified(t, dir, nil)
		if len(v.Missing)+len(v.Changed)+v.Anonymous+v.Parked > 0 {
			t.Errorf("%v", v)
		}
		arrived(t, b, all, kills*3*32, v.Copies, false) // three instances of an unordered queue keep no order among them
		t.Logf("%v", v)
	})
}

// end ends a process and waits for it; one that is asked ends in good order.
func end(t *testing.T, cmd *exec.Cmd, how syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(how); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil && how == syscall.SIGTERM {
		t.Errorf("an orderly end: %v", err)
	}
}

// killSoon runs a route in a process of its own, and kills it a while after it began to move.
func killSoon(t *testing.T, way string, after time.Duration, dir string) {
	t.Helper()
	before := verified(t, dir, nil).Confirmed
	cmd := spawn(t, "TestRouteThatIsToBeKilled", child+"="+way)
	until(t, "it moves", func() bool { return verified(t, dir, nil).Confirmed > before })
	<-time.After(after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
}

// spawn runs a test of this binary that is a process of its own: name, and the variable that it reads.
func spawn(t *testing.T, name, variable string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$") //nolint:gosec // this very binary
	cmd.Env = append(os.Environ(), variable)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// arrived reads the target to its end: each message is there, copies have its identity, and
// first copies of a key are in order.
func arrived(t *testing.T, raw string, messages, mostCopies, copies int, ordered bool) {
	t.Helper()
	seen := map[string]string{} // body by identity
	newest := map[string]int{}  // by key
	total, late := 0, 0
	take(t, raw, func(d *longshore.Delivery) {
		total++
		id, body := d.Headers.String(longshore.HeaderID), string(d.Body)
		if first, again := seen[id]; again {
			if first != body {
				t.Errorf("%q is the identity of %q and %q", id, first, body)
			}
			return
		}
		seen[id] = body
		n, err := strconv.Atoi(body)
		if err != nil {
			t.Error(err)
		}
		if n < newest[string(d.Key)] {
			late++
		}
		newest[string(d.Key)] = max(n, newest[string(d.Key)])
	}, func() bool { return len(seen) == messages })
	bodies := map[string]bool{}
	for _, b := range seen {
		bodies[b] = true
	}
	if len(seen) != messages || len(bodies) != messages {
		t.Errorf("%d identities and %d bodies of %d messages", len(seen), len(bodies), messages)
	}
	if extra := total - messages; extra > mostCopies {
		t.Errorf("%d copies, at most %d were on their way; the ledger knows of %d", extra, mostCopies, copies)
	}
	if late > 0 && ordered {
		t.Errorf("%d first copies came after a later message of their key", late)
	}
}

// size reads a number from the environment, for soaks.
func size(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
