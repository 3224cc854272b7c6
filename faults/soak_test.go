package faults

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// runSoak carries out the plan of the seed.
func runSoak(t *testing.T, seed uint64, total time.Duration, legs ...*soakLeg) {
	t.Helper()
	var faults [][]string
	for _, l := range legs {
		faults = append(faults, l.faults)
		l.child.start()
	}
	plan := soakPlan(seed, total, faults)
	t.Logf("seed %d, %d faults in %v; again: LONGSHORE_SOAK_SEED=%d LONGSHORE_SOAK_FOR=%v", seed, len(plan), total, seed, total)
	done := make(chan struct{})
	ctx, giveUp := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer giveUp()
	for _, l := range legs {
		busy.Go(func() {
			if err := l.produce(ctx, done); err != nil {
				t.Error(err)
			}
		})
		busy.Go(func() { l.roll(ctx, done, min(total/2, 20*time.Second)) })
	}
	steps := make([]int, len(legs))
	for _, s := range plan {
		<-time.After(s.after)
		t.Logf("%s: %s %v", legs[s.leg].kind, s.fault, s.span.Round(time.Millisecond))
		legs[s.leg].suffer(s)
		steps[s.leg]++
	}
	close(done)
	busy.Wait()
	for i, l := range legs {
		l.finish(steps[i])
	}
}

// Random faults over the three transports, on the embedded servers: a consumer is
// killed, frozen and stopped, its link cut, swallowed and refused, and it is started
// and stopped beside that. Nothing is lost, the order of a key holds. F-A01, F-A06, F-B01, F-B04, F-C02, F-D01
func TestSoakOfRandomFaults(t *testing.T) {
	t.Parallel()
	total, seed, _ := soakTime(t)
	rabbitServer, sqsServer := amqptest.New(t), sqstest.New(t)
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000", "group.consumer.session.timeout.ms": "4000", "group.consumer.min.session.timeout.ms": "1000"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	kafka := kafkaLeg(t, fake.ListenAddrs())
	// A member that is killed in its first joining is never timed out by kfake. The real
	// broker's leg kills its consumer.
	kafka.faults = kafka.faults[1:]
	sqs := sqsLeg(t, newSQSLab(t, sqsServer, sqsServer.URL, 3*time.Second)).withGuest()
	sqs.add("throttled", func(span time.Duration) {
		remove := sqsServer.Inject(sqstest.Fault{Code: "RequestThrottled"})
		<-time.After(span)
		remove()
	})
	rabbit := rabbitLeg(t, rabbitServer.URL)
	rabbit.add("broker restarted", func(time.Duration) { rabbitServer.Restart() })
	rabbit.add("memory alarm", func(span time.Duration) {
		rabbitServer.Block("low on memory")
		<-time.After(span)
		rabbitServer.Unblock()
	})
	runSoak(t, seed, total, rabbit, kafka, sqs)
}

// The same on real brokers, which are killed, frozen and alarmed themselves: those
// that only tests with faults use. Handlers write to PostgreSQL behind an inbox, which
// must have one effect of each message. Minutes long, so it runs by `make soak-faults`.
func TestSoakOfRandomFaultsOnRealBrokers(t *testing.T) {
	total, seed, long := soakTime(t)
	if !long || os.Getenv(brokertest.RabbitMQ) == "" {
		t.Skip("not run here: set LONGSHORE_SOAK_FOR and start the brokers (make soak-faults)")
	}
	t.Parallel()
	node, kafkaNode := brokertest.FaultNode(t), brokertest.FaultKafka(t)
	rabbit, kafka := rabbitLeg(t, node.URL).withEffects(), kafkaLeg(t, kafkaNode.Addrs).withGuest().withEffects()
	rabbit.add("broker killed", func(time.Duration) { node.Kill(); node.Start() })
	rabbit.add("broker restarted", func(span time.Duration) { node.StopApp(); <-time.After(span); node.StartApp() })
	rabbit.add("broker frozen", func(span time.Duration) { node.Freeze(); <-time.After(span); node.Thaw() })
	rabbit.add("memory alarm", func(span time.Duration) { node.MemoryAlarm(true); <-time.After(span); node.MemoryAlarm(false) })
	rabbit.add("connections closed", func(time.Duration) { node.CloseAllConnections() })
	kafka.add("broker killed", func(time.Duration) { kafkaNode.Kill(); kafkaNode.Start() })
	kafka.add("broker restarted", func(time.Duration) { kafkaNode.Restart() })
	kafka.add("broker frozen", func(span time.Duration) { kafkaNode.Freeze(); <-time.After(span); kafkaNode.Thaw() })
	throttle := kafkaQuotas(t, kafkaNode.Addrs)
	kafka.add("throttled", func(span time.Duration) { throttle(true); <-time.After(span); throttle(false) })
	sqs := sqsLeg(t, newSQSLab(t, nil, brokertest.SQS(t), 3*time.Second)).withGuest().withEffects()
	runSoak(t, seed, total, rabbit, kafka, sqs)
}
