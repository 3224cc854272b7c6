package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/amqp"
)

// jvmRabbit is beside Spring AMQP. Both sides have as many messages unacked; Spring
// gives each worker a channel with its part of them.
func jvmRabbit(o options, r *report) error {
	url := os.Getenv("AMQP_URL")
	if url == "" {
		fmt.Println("\njvm/rabbit: not run, needs AMQP_URL")
		return nil
	}
	n := o.count(40_000)
	for _, j := range []jvmJob{
		{workers: 1, prefetch: 250, warm: n, n: n},
		{workers: 100, prefetch: 300, warm: n, n: n, work: 5 * time.Millisecond},
	} {
		// to the Java client a slash at the end is a vhost without a name
		j.address, j.from = strings.TrimSuffix(url, "/"), fmt.Sprintf("longshore-bench-jvm-%d", time.Now().UnixNano())
		own := func(linger time.Duration) func() (sample, error) {
			src := amqp.New(url, amqp.Config{}).Queue(j.from, amqp.QueueConfig{Prefetch: j.prefetch, SettleLinger: linger})
			return j.onRabbit(func() (sample, error) { return j.longshore(src, container.Unordered) })
		}
		vs := []variant{
			{"longshore, coalesced acks", own(0)},
			{"longshore, ack each", own(ackEach)},
			{"spring-rabbit, SimpleMessageListenerContainer, ack each", j.onRabbit(func() (sample, error) { return j.java("rabbit-spring") })},
			{"spring-rabbit, DirectMessageListenerContainer, messagesPerAck", j.onRabbit(func() (sample, error) { return j.java("rabbit-direct") })},
		}
		vs = j.withTimer(vs)
		ss, err := interleave(o.rounds, vs)
		if err != nil {
			return err
		}
		jvmTable(r, j.title(fmt.Sprintf("RabbitMQ, %d unacked,", j.prefetch)), vs, ss)
	}
	return nil
}

// onRabbit fills a queue of the job's own, runs f and removes the queue.
func (j jvmJob) onRabbit(f func() (sample, error)) func() (sample, error) {
	return rabbitRun(j.address, j.from, j.all(), func(int) (sample, error) { return f() })
}
