package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The real changelog: every line of an entry is there once afterwards, and a second time
// changes nothing.
func TestNoEntryIsLost(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := func(s string) []string {
		var all []string
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				all = append(all, line)
			}
		}
		slices.Sort(all)
		return all
	}
	once := group(string(text), "", "")
	if !slices.Equal(lines(string(text)), lines(once)) {
		t.Error("lines were lost or changed")
	}
	if group(once, "", "") != once {
		t.Error("a second time changes it again")
	}
}

// What stands before the first section, or before the first entry of one, stays.
func TestNoTextIsLost(t *testing.T) {
	in := "## [Unreleased]\n\nan introduction\n- `transport/amqp`: an entry\n\n### Added\n\na remark\n\n- `transport/kafka`: b\n"
	got := group(in, "", "")
	for _, text := range []string{"an introduction\n", "an entry\n", "a remark\n", "b\n"} {
		if strings.Count(got, text) != 1 {
			t.Errorf("%q is there %d times in\n%s", text, strings.Count(got, text), got)
		}
	}
}

func TestGroup(t *testing.T) {
	in := "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- `transport/kafka`: a\n  more\n- new verbs\n- `transport/amqp`: b\n\n### Fixed\n\n- `admin`: c\n\n## [0.0.1] - 2026-01-01\n\n- old\n"
	want := "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n\n### Added\n\n#### RabbitMQ\n\n- `transport/amqp`: b\n\n#### Kafka\n\n- `transport/kafka`: a\n  more\n\n#### Containers and the contract\n\n- new verbs\n" +
		"\n### Fixed\n\n#### Command, page and admin API\n\n- `admin`: c\n\n## [0.0.1] - 2026-01-01\n\n- old\n"
	if got := group(in, "v0.1.0", "2026-12-01"); got != want {
		t.Errorf("got\n%s", got)
	}
}
