package faults

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

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

// kafkaQuotas returns what makes the broker hold back every client's answers, and ends it.
func kafkaQuotas(t *testing.T, addrs []string) (throttle func(on bool)) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		t.Fatal(err)
	}
	adm := kadm.NewClient(cl)
	throttle = func(on bool) {
		q := kadm.AlterClientQuotaEntry{Entity: kadm.ClientQuotaEntity{{Type: "client-id"}}} // of no name: all
		for _, rate := range []string{"producer_byte_rate", "consumer_byte_rate"} {
			q.Ops = append(q.Ops, kadm.AlterClientQuotaOp{Key: rate, Value: 200, Remove: !on})
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		done, err := adm.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{q})
		if err != nil || done[0].Err != nil {
			t.Errorf("quotas of Kafka: %v %v", err, done)
		}
	}
	t.Cleanup(func() {
		throttle(false)
		cl.Close()
	})
	return throttle
}
