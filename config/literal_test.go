package config

import (
	"testing"

	"github.com/longshore-go/longshore/internal/problem"
)

// F-N22: what is left of a URL without its wrong parameters is as it was written.
func TestAURLWithoutItsMistakesKeepsItsLists(t *testing.T) {
	wrong := problem.Bad("colour", "", "is unknown").In(problem.Parameter).Of("source URL", "")
	for raw, want := range map[string]string{
		"amqp://h/v?queues=a%2Cb,c&colour=red":   "amqp://h/v?queues=a%2Cb,c",
		"amqp://h/v?col%6Fur=red&queues=a,b%2Bc": "amqp://h/v?queues=a,b%2Bc",
		"amqp://h/v?colour=red":                  "amqp://h/v",
		"amqp://h/v?queues=a,b":                  "amqp://h/v?queues=a,b",
	} {
		if got := without(&sourceSection{URL: raw}, wrong); got.URL != want {
			t.Errorf("%s: %s, want %s", raw, got.URL, want)
		}
	}
}

// F-N22: a variable's list takes names as they are, null too, and a JSON array any character.
func TestVariablesOfListsTakeAnyName(t *testing.T) {
	text := "brokers: {r: {url: amqp://localhost}}\ncontainers: {a: {source: {broker: r, queues: [x]}}}\n"
	for value, want := range map[string]string{"null": "null", "a, b": "a|b", `["a,b"," c"]`: "a,b| c", "[eu]": "[eu]"} {
		conf, _ := Options{Environ: []string{"LONGSHORE_CONTAINERS_A_SOURCE_QUEUES=" + value}}.parse("longshore.yaml", []byte(text), true)
		got := ""
		for i, q := range conf.loader.file.Containers["a"].Source.Queues {
			if i > 0 {
				got += "|"
			}
			got += q
		}
		if got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}
