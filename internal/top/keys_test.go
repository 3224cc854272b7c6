package top

import (
	"reflect"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/longshore-go/longshore/internal/fleet"
)

func strip(s string) string { return ansi.Strip(s) }

func pressed(s Screen, keys ...string) (Screen, Effect) {
	var e Effect
	for _, k := range keys {
		text := ""
		if len([]rune(k)) == 1 {
			text = k
		}
		s, e = s.Press(k, text)
	}
	return s, e
}

func TestKeys(t *testing.T) {
	for _, row := range []struct {
		keys []string
		page Page
		sel  string
		want Effect
	}{
		{[]string{"q"}, Overview, "", Effect{Quit: true}},
		{[]string{"ctrl+c"}, Overview, "", Effect{Quit: true}},
		{[]string{"t", "ctrl+c"}, Overview, "invoices", Effect{Quit: true}},
		{[]string{"enter"}, One, "invoices", Effect{}}, // the worst comes first
		{[]string{"down", "down", "enter"}, One, "orders", Effect{}},
		{[]string{"down", "down", "down", "up", "enter", "esc"}, Overview, "audit", Effect{}},
		{[]string{"?"}, Help, "", Effect{}},
		{[]string{"?", "esc"}, Overview, "", Effect{}},
		{[]string{"/", "o", "r", "d", "enter", "enter"}, One, "orders", Effect{}},
		{[]string{"/", "q", "esc"}, Overview, "", Effect{}},
		{[]string{"p", "w", "h", "y", "enter"}, Overview, "invoices", Effect{Act: &Action{"invoices", []string{"shop-1:8391"}, "POST", "pause", map[string]any{"reason": "why"}, "paused"}}},
		{[]string{"down", "r", "enter"}, Overview, "audit", Effect{Act: &Action{"audit", []string{"shop-1:8391"}, "POST", "resume", map[string]any{}, "resumed"}}},
		{[]string{"p", "esc", "enter"}, One, "invoices", Effect{}},
		{[]string{"end", "t", "backspace", "backspace", "5", "tab", "tab", "x", "enter"}, Overview, "orders",
			Effect{Act: &Action{"orders", []string{"shop-1:8391"}, "PUT", "throttle", map[string]any{"permits": 5, "for": "10m", "reason": "x"}, "permits 5 for 10m"}}},
		{[]string{"t", "enter"}, Overview, "invoices", Effect{}}, // permits are needed
		{[]string{"t", "1", "tab", "ctrl+u", "9", "enter"}, Overview, "invoices", Effect{}},
		{[]string{"t", "1", "tab", "ctrl+u", "enter"}, Overview, "invoices", Effect{Act: &Action{"invoices", []string{"shop-1:8391"}, "PUT", "throttle", map[string]any{"permits": 1}, "permits 1"}}},
		{[]string{"end", "c", "enter"}, Overview, "orders", Effect{Act: &Action{"orders", []string{"shop-1:8391"}, "PUT", "throttle", map[string]any{"clear": true}, "throttle cleared"}}},
		{[]string{"end", "w", "ctrl+u", "4", "enter"}, Overview, "orders", Effect{Act: &Action{"orders", []string{"shop-1:8391"}, "PUT", "workers", map[string]any{"min": 4, "max": 100}, "workers 4 to 100"}}},
		{[]string{"end", "w", "ctrl+u", "0", "enter"}, Overview, "orders", Effect{}},
		{[]string{"down", "D", "enter"}, Overview, "audit", Effect{}}, // its name is asked for
		{[]string{"down", "D", "a", "u", "d", "i", "t", "enter"}, Overview, "audit", Effect{Act: &Action{"audit", []string{"shop-1:8391"}, "POST", "drain", map[string]any{}, "drained"}}},
	} {
		s, e := pressed(screen(shop()), row.keys...)
		if s.Page != row.page || s.Selected != row.sel || !reflect.DeepEqual(e, row.want) {
			t.Errorf("%v: page %d, %q, %+v", row.keys, s.Page, s.Selected, e)
			if e.Act != nil {
				t.Errorf("%+v", *e.Act)
			}
		}
	}
}

// A delivery is chosen, and acted on after a question that says what cannot be undone.
func TestActionsOnOneDelivery(t *testing.T) {
	for _, row := range []struct {
		keys []string
		asks string
		want *Action
	}{
		{[]string{"x"}, "Its handler runs: its context ends now.", nil},
		{[]string{"x", "enter"}, "", &Action{"orders", []string{"shop-1:8391"}, "POST", "records/dead-letter", map[string]any{"record": "01J9QK4F", "interrupt": true}, "01J9QK4F dead-lettered"}},
		{[]string{"down", "down", "n"}, "Retry 01J9QK60 of orders on shop-1:8391?", nil},
		{[]string{"end", "n", "o", "k", "enter"}, "", &Action{"orders", []string{"shop-1:8391"}, "POST", "records/retry-now", map[string]any{"record": "01J9QK60", "reason": "ok"}, "01J9QK60 retried now"}},
		{[]string{"down", "down", "down", "b", "enter"}, "", &Action{"orders", []string{"shop-1:8391"}, "POST", "records/release", map[string]any{"record": "01J9QK60"}, "01J9QK60 given back to the broker"}},
		{[]string{"x", "esc"}, "", nil},
		{[]string{"R", "enter"}, "", &Action{"orders", []string{"shop-1:8391"}, "POST", "reconnect", map[string]any{}, "trying to connect"}},
	} {
		s, e := pressed(one(), row.keys...)
		if !reflect.DeepEqual(e.Act, row.want) {
			t.Errorf("%v: %+v", row.keys, e.Act)
		}
		if text := strings.Join(strings.Fields(s.View()), " "); !strings.Contains(text, row.asks) {
			t.Errorf("%v does not ask %q:\n%s", row.keys, row.asks, s.View())
		}
	}
	gone, _ := pressed(one(), "down", "down")
	gone.Held.Records = gone.Held.Records[:2]
	if gone, _ = pressed(gone, "x"); gone.Dialog.Record != "01J9QK4F" {
		t.Errorf("after the chosen one has gone: %q", gone.Dialog.Record)
	}
	if s, e := pressed(screen(shop()), "x"); e.Act != nil || s.Dialog.Kind != NoDialog {
		t.Errorf("on the overview: %+v", s.Dialog)
	}
}

// An action is for the instances that were shown when it was asked for, and that answer.
func TestWhomAnActionIsFor(t *testing.T) {
	s := screen(two())
	s.Selected = "orders"
	_, e := pressed(s, "p", "enter")
	if !reflect.DeepEqual(e.Act.Instances, []string{"shop-1:8391", "shop-2:8391"}) {
		t.Errorf("%v", e.Act.Instances)
	}
	if _, e = pressed(s, "i", "i", "p", "enter"); !reflect.DeepEqual(e.Act.Instances, []string{"shop-2:8391"}) {
		t.Errorf("%v", e.Act.Instances)
	}
	if s, e = pressed(s, "i", "i", "i", "p"); e.Act != nil || !strings.Contains(s.View(), "no instance with orders answers") {
		t.Errorf("%+v\n%s", e.Act, s.View())
	}
	if s, _ = pressed(s, "i"); s.Scope != "" {
		t.Errorf("after the last instance comes %q", s.Scope)
	}
	asked, _ := pressed(screen(shop()), "p")
	asked.Fleet = fleet.Snapshot{Instances: append([]fleet.Instance{instance("new:1", well("aaa"))}, asked.Fleet.Instances...)}
	if _, e = pressed(asked, "enter"); e.Act.Container != "invoices" || len(e.Act.Instances) != 1 {
		t.Errorf("%+v", e.Act)
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[float64]string{-1: "–", 0: "0", 0.5: "0.5", 3: "3", 999: "999", 1204: "1,204", 999999: "999,999", 1.25e6: "1.2M", 2e9: "2.0G", 1e15: "many"} {
		if got := number(n); got != want || len([]rune(got)) > 7 {
			t.Errorf("%v: %s", n, got)
		}
	}
	for n, want := range map[float64]string{0: "–", 0.0000012: "1 µs", 0.018: "18 ms", 9: "9.0 s", 240: "4 min", 7200: "2.0 h", 1e6: "12 d"} {
		if got := span(n); got != want {
			t.Errorf("%v: %s", n, got)
		}
	}
	l := Look{}
	if got := l.spark([]float64{0, 1, 2, -1, 4}, 6); got != " ▁▃▅ █" {
		t.Errorf("%q", got)
	}
	if got := l.spark([]float64{0, 9, 0, 0, 0, 1}, 3); got != "█▁▂" {
		t.Errorf("a peak is lost: %q", got)
	}
	if got := (Look{ASCII: true}).spark([]float64{0, 1}, 2); got != "_#" {
		t.Errorf("%q", got)
	}
}
