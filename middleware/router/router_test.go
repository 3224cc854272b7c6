package router_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/middleware/router"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// named is a handler that says who ran.
func named(name string, ran *string) longshore.Handler {
	return longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { *ran = name; return nil })
}

func delivery(typ, topic, key string) *longshore.Delivery {
	d := longshore.NewDelivery(context.Background(), nil, 1)
	d.ID, d.Type = "m-1", typ
	d.Origin = longshore.Origin{Topic: topic, RoutingKey: key}
	return d
}

func TestFirstRouteThatMatchesTakesTheMessage(t *testing.T) {
	var ran string
	r, err := router.New(router.Config{TypeHeaders: []string{"kind", "__TypeId__"}},
		router.Type("paid", named("paid", &ran)),
		router.RoutingKey("audit.#", named("audit", &ran)),
		router.Type("canceled", named("canceled", &ran)),
		router.Topic("orders.*.eu", named("eu", &ran)),
		router.When("urgent", func(d *longshore.Delivery) bool { return d.Priority > 5 }, named("urgent", &ran)),
	)
	if err != nil {
		t.Fatal(err)
	}
	spring := delivery("", "", "")
	spring.Headers = longshore.Headers{{Name: "__TypeId__", Value: "paid"}}
	urgent := delivery("other", "", "")
	urgent.Priority = 9
	for name, tc := range map[string]struct {
		d    *longshore.Delivery
		want string
	}{
		"type":                  {delivery("paid", "x", "x"), "paid"},
		"type before a pattern": {delivery("paid", "", "audit.a"), "paid"},
		"pattern before a type": {delivery("canceled", "", "audit.a"), "audit"},
		"type after a pattern":  {delivery("canceled", "", "orders"), "canceled"},
		"topic":                 {delivery("", "orders.v1.eu", ""), "eu"},
		"function":              {urgent, "urgent"},
		"type in a header":      {spring, "paid"},
	} {
		ran = ""
		if err := r.Handle(t.Context(), tc.d); err != nil || ran != tc.want {
			t.Errorf("%s: %q took it, want %q (%v)", name, ran, tc.want, err)
		}
	}
}

func TestPatternsAreRabbitMQs(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		yes, no []string
	}{
		{"a.b", []string{"a.b"}, []string{"a", "a.b.c", "a.c", ""}},
		{"*.b", []string{"a.b", ".b"}, []string{"b", "a.a.b"}},
		{"a.#", []string{"a", "a.b", "a.b.c"}, []string{"b", "ab"}},
		{"#", []string{"", "a", "a.b"}, nil},
		{"#.b.#", []string{"b", "a.b", "b.c", "a.b.c.b"}, []string{"a", "a.c"}},
		{"*.*", []string{"a.b", "."}, []string{"a", "a.b.c"}},
		{"a.*.#.z", []string{"a.b.z", "a.b.c.d.z"}, []string{"a.z", "a.b.c"}},
	} {
		var ran string
		r, err := router.New(router.Config{}, router.RoutingKey(tc.pattern, named("it", &ran)))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range tc.yes {
			if r.Handle(t.Context(), delivery("", "", key)) != nil {
				t.Errorf("%q does not match %q", tc.pattern, key)
			}
		}
		for _, key := range tc.no {
			if r.Handle(t.Context(), delivery("", "", key)) == nil {
				t.Errorf("%q matches %q", tc.pattern, key)
			}
		}
	}
	// A key made to be slow is not.
	var ran string
	r, err := router.New(router.Config{}, router.RoutingKey(strings.Repeat("#.a.", 50)+"b", named("it", &ran)))
	if err != nil {
		t.Fatal(err)
	}
	if r.Handle(t.Context(), delivery("", "", strings.Repeat("a.", 2000)+"c")) == nil {
		t.Error("it matches")
	}
}

func TestMistakesAreFoundAtOnce(t *testing.T) {
	var ran string
	h := named("h", &ran)
	_, err := router.New(router.Config{Unmatched: 9, ReleaseDelay: -1}, router.Type("a", h), router.Type("a", h), router.Type("", h), router.Topic("a.b*", h), router.RoutingKey("", h),
		router.When("w", nil, h), router.Type("b", nil))
	for _, want := range []string{`two routes take type "a"`, "the type is empty", "whole words", "the pattern is empty", "the function is nil", `type "b" has no handler`, "Unmatched is 9", "ReleaseDelay"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s in %v", want, err)
		}
	}
	if _, err := router.New(router.Config{}); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("no route: %v", err)
	}
	if _, err := router.New(router.Config{Fallback: h, Unmatched: router.Discard}); err == nil {
		t.Error("a fallback and a policy")
	}
}

func TestWhatNoRouteTakesFollowsThePolicy(t *testing.T) {
	var ran string
	for policy, want := range map[router.Policy]longshore.Verdict{router.Reject: longshore.VerdictReject, router.Discard: longshore.VerdictDiscard, router.Retry: longshore.VerdictNone, router.Release: longshore.VerdictRelease} {
		r, err := router.New(router.Config{Unmatched: policy}, router.Type("a", named("a", &ran)))
		if err != nil {
			t.Fatal(err)
		}
		err = r.Handle(t.Context(), delivery("b", "t", "k"))
		got, delay := longshore.VerdictOf(err)
		if policy == router.Retry {
			want = got // a plain error: the container's Redelivery decides
		}
		if got != want || longshore.CodeOf(err) != longshore.CodeNoHandler || !strings.Contains(err.Error(), `type "b"`) || (policy == router.Release) != (delay == 30*time.Second) {
			t.Errorf("%v: %v after %v, %v", policy, got, delay, err)
		}
	}
	r, err := router.New(router.Config{Fallback: named("rest", &ran)}, router.Type("a", named("a", &ran)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Handle(t.Context(), delivery("b", "", "")); err != nil || ran != "rest" {
		t.Errorf("fallback: %q, %v", ran, err)
	}
}

func TestMissedTypesAreLoggedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		var ran string
		r, err := router.New(router.Config{Logger: zap.New(core)}, router.Type("a", named("a", &ran)))
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			_ = r.Handle(t.Context(), delivery("b", "t", "k"))
		}
		if all := logs.All(); len(all) != 1 || all[0].Message != "no route" || all[0].ContextMap()["type"] != "b" || all[0].ContextMap()["policy"] != "reject" {
			t.Errorf("%+v", all)
		}
		<-time.After(time.Minute)
		_ = r.Handle(t.Context(), delivery("b", "t", "k"))
		if all := logs.All(); len(all) != 2 || all[1].ContextMap()["repeated"] != int64(10) {
			t.Errorf("%+v", all)
		}
		for i := range 1000 {
			_ = r.Handle(t.Context(), delivery(fmt.Sprint("random", i), "t", "k"))
		}
		if n := logs.Len(); n > 110 {
			t.Errorf("%d lines for a thousand types", n)
		}
	})
}

type order struct{ ID string }

// One container, typed handlers, and the dead-letter destination for the rest.
func TestRouterInAContainer(t *testing.T) {
	broker := memory.New(memory.Config{})
	got := make(chan string, 2)
	on := func(what string) longshore.Handler {
		return longshore.Typed(longshore.ContentTypes{Default: longshore.JSON{}}, func(_ context.Context, o order, _ *longshore.Delivery) error { got <- what + " " + o.ID; return nil })
	}
	r, err := router.New(router.Config{}, router.Type("paid", on("paid")), router.Type("canceled", on("canceled")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), r, container.Config{Logger: zap.NewNop(), DeadLetter: container.DeadLetter{To: "dead"}, Workers: container.Workers{Max: 1}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	containertest.PublishMessages(t, c, &longshore.Message{Type: "paid", Body: []byte(`{"ID":"1"}`)}, &longshore.Message{Type: "shipped", Body: []byte(`{}`)}, &longshore.Message{Type: "canceled", Body: []byte(`{"ID":"2"}`)})
	containertest.WaitIdle(t, c)
	if a, b := <-got, <-got; a != "paid 1" || b != "canceled 2" {
		t.Errorf("%s, %s", a, b)
	}
	if st := c.Stats(); st.DeadLetters[longshore.CodeNoHandler] != 1 {
		t.Errorf("%+v", st.DeadLetters)
	}
}
