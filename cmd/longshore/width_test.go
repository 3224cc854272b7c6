package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/table"
)

// wide is a text that no terminal shows in one line.
const wide = "the payment provider refused the order because its currency is not one of those that the contract of this customer names"

// Every table has a header and fits the terminal, however long the texts in it are.
func TestTablesFitTheTerminal(t *testing.T) {
	letters, _ := filled(t, &longshore.Message{ID: strings.Repeat("b7e1", 12), Key: []byte(strings.Repeat("customer-", 5)), ContentType: "application/vnd.example.order+json",
		Body: []byte(`{"text":"` + wide + `"}`), Timestamp: time.Now(), Headers: longshore.Headers{{Name: longshore.HeaderID, Value: strings.Repeat("b7e1", 12)},
			{Name: "longshore-dead-reason", Value: "com.example.payments.CurrencyNotSupportedException"}, {Name: "longshore-dead-error", Value: wide}, {Name: "longshore-dead-attempts", Value: "3"}}})
	in := running(t, nil)
	ctl := reach(in)
	target := teamA(t)
	for name, c := range map[string]struct {
		world  world
		args   []string
		header []string
	}{
		"peek":     {letters, []string{"peek", "x"}, []string{"key", "size", "body"}},
		"dlq list": {letters, []string{"dlq", "list", "x"}, []string{"id", "reason", "attempts"}},
		"dlq show": {letters, []string{"dlq", "show", "x", strings.Repeat("b7e1", 12)}, []string{"id"}},
		"status":   {ctl, []string{"ctl", "status"}, []string{"container", "state", "workers"}},
		"doctor":   {world{}, []string{"doctor", target}, []string{"check", "state", "what"}},
		"explain":  {world{}, []string{"explain"}, []string{"code", "meaning"}},
	} {
		for _, width := range []int{80, 140} {
			t.Run(fmt.Sprint(name, width), func(t *testing.T) {
				w := c.world
				w.terminal, w.width, w.env = true, width, withEnv(w.env, "NO_COLOR", "1")
				got := w.run(t, c.args...)
				lines := strings.Split(strings.TrimSuffix(got.out, "\n"), "\n")
				for _, word := range c.header {
					if !strings.Contains(lines[0], word) {
						t.Errorf("no %q in the header %q", word, lines[0])
					}
				}
				for _, line := range lines {
					if name == "dlq show" && strings.HasPrefix(line, "{") {
						break // the body is printed as it is
					}
					if table.Width(line) > width {
						t.Errorf("%d wide: %q", table.Width(line), line)
					}
				}
				if name == "dlq list" && !strings.Contains(strings.ReplaceAll(got.out, " ", ""), "currency") {
					t.Errorf("the error is missing:\n%s", got.out)
				}
			})
		}
	}
}

func withEnv(env map[string]string, name, value string) map[string]string {
	out := map[string]string{name: value}
	for k, v := range env {
		out[k] = v
	}
	return out
}

// States have a glyph and a word on a terminal, colour where it is wanted, and the word alone in
// a pipe.
func TestStatesAreNotColourAlone(t *testing.T) {
	w := reach(running(t, nil))
	if got := w.run(t, "ctl", "status"); !strings.Contains(got.out, "  running  ") || strings.ContainsAny(got.out, "✓\x1b") {
		t.Errorf("pipe: %q", got.out)
	}
	w.terminal = true
	if got := w.run(t, "ctl", "status"); !strings.Contains(got.out, "\x1b[32m✓ running\x1b[0m") {
		t.Errorf("terminal: %q", got.out)
	}
	w.env = withEnv(w.env, "NO_COLOR", "1")
	if got := w.run(t, "ctl", "status"); !strings.Contains(got.out, "✓ running") || strings.Contains(got.out, "\x1b") {
		t.Errorf("NO_COLOR: %q", got.out)
	}
}
