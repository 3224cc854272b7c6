package config

import (
	"reflect"
	"testing"
	"time"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
)

func TestSettingsOfTheSourceSystemsReachTheContainer(t *testing.T) {
	c := load(t, nowhere(), `
brokers: {k: {url: "kafka://127.0.0.1:1"}, r: {url: "amqp://127.0.0.1:1"}, s: {url: "sqs://", region: eu-west-1}}
containers:
  a: {source: mem://a, deletion: on_success}
  b: {source: mem://b, deletion: no_redrive, reopen: {every: 5s}}
  d:
    source: {broker: k, topic: orders, group: billing, members: 4, commit: after_each}
    dead_letter: {policy: keep}
  e:
    source: {broker: r, queue: orders-1, declare: {bindings: [{exchange: shared, key: "1", kind: x-consistent-hash, exchange_arguments: {hash-header: customer}}]}}
  g: {source: {broker: r, queue: orders, consumers: per_worker, prefetch: 1}}
  f: {source: {broker: s, queue: orders, batch_by_batch: true}}
  c: {source: mem://c, autoscale: {policy: spring, start_interval: 1s, stop_interval: 2s, active_trigger: 3, idle_trigger: 4, receive_timeout: 5s, batch_size: 6}}
`)
	settings := func(name string) container.Config {
		got, err := c.Settings(name, Code{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := settings("a").Deletion; got != container.DeleteOnSuccess {
		t.Errorf("%v", got)
	}
	if got := settings("b"); got.Deletion != container.DeleteNoRedrive || got.Reopen != (container.Backoff{Every: 5 * time.Second}) {
		t.Errorf("%+v", got)
	}
	section := func(name string) *sourceSection { return c.loader.file.Containers[name].Source }
	if got := section("d").group(); got.Members != 4 || got.Commit != kafka.AfterEach {
		t.Errorf("%+v", got)
	}
	if got := section("e").rabbit().Declare.Bindings[0]; got.Kind != amqp.ConsistentHash || got.ExchangeArguments["hash-header"] != "customer" {
		t.Errorf("%+v", got)
	}
	if got := section("g").rabbit(); got.Consumers != amqp.PerWorker || got.Prefetch != 1 {
		t.Errorf("%+v", got)
	}
	if !section("f").sqs().BatchByBatch {
		t.Error("batch_by_batch is lost")
	}
	want := autoscale.Spring{StartInterval: time.Second, StopInterval: 2 * time.Second, ActiveTrigger: 3, IdleTrigger: 4, ReceiveTimeout: 5 * time.Second, BatchSize: 6}
	if got := settings("c").Autoscale; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
