package config

import (
	"reflect"
	"testing"
	"time"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
)

func TestSettingsOfTheSourceSystemsReachTheContainer(t *testing.T) {
	c := load(t, nowhere(), `
containers:
  a: {source: mem://a, deletion: on_success}
  b: {source: mem://b, deletion: no_redrive, reopen: {every: 5s}}
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
	want := autoscale.Spring{StartInterval: time.Second, StopInterval: 2 * time.Second, ActiveTrigger: 3, IdleTrigger: 4, ReceiveTimeout: 5 * time.Second, BatchSize: 6}
	if got := settings("c").Autoscale; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
