package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	file = "CHANGELOG.md"
	head = "## [Unreleased]\n"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "changelog:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	tag := ""
	switch len(args) {
	case 0:
	case 1:
		tag = args[0]
	default:
		return fmt.Errorf("%d arguments, and it takes at most the tag of a version", len(args))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), head) {
		return fmt.Errorf("%s has no section %q: nothing was changed", file, strings.TrimSpace(head))
	}
	return os.WriteFile(file, []byte(group(string(text), tag, time.Now().Format(time.DateOnly))), 0o644) //nolint:gosec // as it was
}

// area is a heading and the words that an entry of it begins with or has.
type area struct {
	title string
	words []string
}

// areas are asked in order; the first whose word is in the first 60 characters of an entry
// takes it.
func areas() []area {
	return []area{
		{"Bridge", []string{"bridge", "Forwarded", "Remainder"}},
		{"Exactly once: mutex, inbox, outbox", []string{"mutex", "outbox", "inbox"}},
		{"Command, page and admin API", []string{"longshore top", "longshore console", "longshore doctor", "longshore dlq", "longshore tail", "longshore publish", "longshore ctl", "longshore demo",
			"`ctl", "`dlq", "`doctor", "`admin", "`top", "`tail", "`peek", "cmd/longshore", "console", "the command", "the page"}},
		{"RabbitMQ", []string{"amqp", "RabbitMQ", "rabbitmq"}},
		{"Kafka", []string{"kafka", "Kafka"}},
		{"SQS", []string{"sqs", "SQS"}},
		{"Middlewares and codecs", []string{"middleware", "codec", "throttle", "breaker", "Typed", "ContentTypes"}},
		{"Telemetry and logs", []string{"telemetry", "logging", "Logs", "log ", "metrics", "trace"}},
		{"Configuration and lifecycle", []string{"config", "lifecycle", "literal:", "YAML"}},
		{"Documentation, examples and tools", []string{"make ", "docs", "examples", ".github", "scripts", "simulation", "faults", "benchmark"}},
		{"Containers and the contract", nil}, // everything else
	}
}

// group returns the text with the section [Unreleased] grouped, as the section of tag if
// there is one.
func group(text, tag, date string) string {
	before, rest, found := strings.Cut(text, head)
	if !found {
		return text
	}
	body, after := rest, ""
	if i := strings.Index(rest, "\n## ["); i >= 0 {
		body, after = rest[:i+1], rest[i:]
	}
	var out strings.Builder
	out.WriteString(before + head)
	if tag != "" {
		fmt.Fprintf(&out, "\n## [%s] - %s\n", strings.TrimPrefix(tag, "v"), date)
	}
	sections := strings.Split("\n"+strings.TrimSpace(body), "\n### ")
	if intro := strings.TrimSpace(sections[0]); intro != "" {
		out.WriteString("\n" + intro + "\n")
	}
	for _, section := range sections[1:] {
		title, entries, _ := strings.Cut(section, "\n")
		fmt.Fprintf(&out, "\n### %s\n", title)
		grouped := byArea(split(entries))
		for _, a := range areas() {
			if es := grouped[a.title]; len(es) > 0 {
				fmt.Fprintf(&out, "\n#### %s\n\n%s", a.title, strings.Join(es, ""))
			}
		}
	}
	return out.String() + after
}

// split cuts a section into its entries: a line that begins with "- ", and the lines after it.
// Lines before the first one are an entry too.
func split(section string) (entries []string) {
	for line := range strings.Lines(section + "\n") {
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "#### "):
		case strings.HasPrefix(line, "- "), len(entries) == 0:
			entries = append(entries, line)
		default:
			entries[len(entries)-1] += line
		}
	}
	return entries
}

func byArea(entries []string) map[string][]string {
	out := map[string][]string{}
	for _, e := range entries {
		begin := e[:min(len(e), 60)]
		for _, a := range areas() {
			if a.words == nil || slices.ContainsFunc(a.words, func(w string) bool { return strings.Contains(begin, w) }) {
				out[a.title] = append(out[a.title], e)
				break
			}
		}
	}
	return out
}
