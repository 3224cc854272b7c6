package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/kafka"
)

// jvmKafka is beside Spring for Apache Kafka, which works on as many records at once
// as there are partitions, and Confluent's Parallel Consumer, ordered by key.
// The first of Spring's consumers has all partitions until it has worked off its first
// poll, 500 records: the warm-up of slow handlers must be longer.
func jvmKafka(k *kafkaBroker, o options, r *report) error {
	const partitions = 8
	for _, j := range []jvmJob{
		{workers: partitions, n: o.count(100_000)},
		{workers: partitions, n: max(4_000, o.count(10_000)), work: 5 * time.Millisecond},
		{workers: kafkaWorkers, n: o.count(50_000), work: 5 * time.Millisecond},
	} {
		j.warm = j.n
		t, err := k.filled(partitions, j.all())
		if err != nil {
			return err
		}
		j.address, j.from = strings.Join(k.addrs, ","), t.name
		vs := []variant{
			{"longshore, by key", j.onKafka(t, jvmJob.kafka)},
			{"Parallel Consumer, by key", j.onKafka(t, func(j jvmJob) (sample, error) { return j.java("kafka-parallel") })},
		}
		if j.workers <= partitions {
			vs = append(vs, variant{"spring-kafka, a consumer for each partition", j.onKafka(t, func(j jvmJob) (sample, error) { return j.java("kafka-spring") })})
		}
		vs = j.withTimer(vs)
		ss, err := interleave(o.rounds, vs)
		if err != nil {
			return err
		}
		jvmTable(r, j.title(fmt.Sprintf("%s, %d partitions,", k.name, partitions)), vs, ss)
	}
	return nil
}

// onKafka runs f as a new group, which has committed everything when it has stopped.
func (j jvmJob) onKafka(t *kafkaTopic, f func(jvmJob) (sample, error)) func() (sample, error) {
	return func() (sample, error) {
		j.group = t.group()
		s, err := f(j)
		if err != nil {
			return s, err
		}
		return s, t.committed(j.group, j.all())
	}
}

func (j jvmJob) kafka() (sample, error) {
	src := kafka.New(strings.Split(j.address, ","), kafka.Config{}).Group(j.group, []string{j.from}, kafka.GroupConfig{})
	return j.longshore(src, container.ByKey)
}
