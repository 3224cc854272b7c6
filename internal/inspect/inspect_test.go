package inspect

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDrafts(t *testing.T) {
	one, err := Draft{ID: "a", Key: "", HasKey: true, Headers: []string{"x=1", "x=2=3"}, ContentType: "text/plain"}.Read(strings.NewReader("a\nb\n"))
	if err != nil || len(one) != 1 {
		t.Fatal(one, err)
	}
	m := one[0]
	if string(m.Body) != "a\nb\n" || m.ID != "a" || m.Key == nil || len(m.Key) != 0 || m.ContentType != "text/plain" ||
		!slices.Equal(m.Headers.Values("x"), []any{"1", "2=3"}) {
		t.Errorf("%+v", m)
	}

	lines, err := Draft{ID: "a", Lines: true}.Read(strings.NewReader("one\n\ntwo\r\nthree"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range lines {
		got = append(got, m.ID+" "+string(m.Body))
		if m.Key != nil {
			t.Error("a key although none was given")
		}
	}
	if !slices.Equal(got, []string{"a-1 one", "a-2 two", "a-3 three"}) {
		t.Errorf("%q", got)
	}

	for _, h := range []string{"novalue", "=x", ""} {
		if _, err := (Draft{Headers: []string{h}}).Read(strings.NewReader("x")); err == nil {
			t.Errorf("header %q was taken", h)
		}
	}
}

func delivery() *longshore.Delivery {
	d := longshore.NewDelivery(context.Background(), nil, 0)
	d.Message = longshore.Message{ID: "i", Key: []byte("k"), Body: []byte("v%k"), ContentType: "c/t",
		Timestamp: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)}
	d.Headers.Add("a", []byte("b"))
	d.Headers.Add("n", int64(7))
	d.Origin.Topic, d.Origin.Partition, d.Origin.Position, d.Attempt = "t", 2, 9, 4
	return d
}

func TestFormats(t *testing.T) {
	for pattern, want := range map[string]string{
		"":                         "\n",
		"%k %v":                    "k v%k\n",
		`%k\t%v\n`:                 "k\tv%k\n",
		"%%%n%%":                   "%1%\n",
		`%t/%p/%o %i %s %a %c \\n`: "t/2/9 i 3 4 c/t \\n\n",
		"%h %T":                    "a=b,n=7 2026-01-02T03:04:05.0000006Z\n",
		"größe %k":                 "größe k\n",
	} {
		f, err := ParseFormat(pattern)
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
			continue
		}
		if got := f.Render(1, delivery(), nil); got != want {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	}
	for _, pattern := range []string{"%", `\`, "%x", `\x`, "a%"} {
		if _, err := ParseFormat(pattern); err == nil {
			t.Errorf("%q was taken", pattern)
		}
	}
}

func TestDocuments(t *testing.T) {
	d := delivery()
	d.Key, d.Body = []byte{0xff}, nil
	d.Headers.Add("nan", math.NaN())
	d.Headers.Add("table", longshore.Headers{{Name: "x", Value: []any{int64(1), []byte{0xff}}}})
	b, err := json.Marshal(NewDocument(3, d))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"n":3,"id":"i","key_base64":"/w==","queue":"t","partition":2,"position":9,"attempt":4,"time":"2026-01-02T03:04:05.0000006Z",` +
		`"content_type":"c/t","headers":[{"name":"a","value":"b"},{"name":"n","value":7},{"name":"nan","value":"NaN"},` +
		`{"name":"table","value":[{"name":"x","value":[1,"/w=="]}]}],"size":0}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	d.Key, d.Body = []byte{}, []byte{}
	if b, err = json.Marshal(NewDocument(1, d)); err != nil || !strings.Contains(string(b), `"key":""`) || !strings.Contains(string(b), `"body":""`) {
		t.Errorf("an empty key and body became %s (%v)", b, err)
	}
}

func TestRows(t *testing.T) {
	d := delivery()
	d.Body = []byte(strings.Repeat("ä", 100))
	row := Row(12, d, 10)
	if row[0] != "12" || row[1] != "k" || row[3] != "c/t" || row[4] != "200 B" || row[5] != strings.Repeat("ä", 10)+"…" {
		t.Errorf("%q", row)
	}
	d.Body, d.Key = []byte{0xff, 0, 1}, nil
	if row = Row(1, d, 4); row[1] != "-" || row[5] != "ff00" {
		t.Errorf("%q", row)
	}
}

// The time of a look says nothing about a message.
func TestAMessageWithoutATimeShowsNone(t *testing.T) {
	d := delivery()
	d.Timestamp, d.Origin.ReceivedAt = time.Time{}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if doc, row := NewDocument(1, d), Row(1, d, 20); doc.Time != nil || row[2] != "-" {
		t.Errorf("%v, %q", doc.Time, row)
	}
}

// F-N22: headers with any name, and with values that are no text.
func TestHeadersAsJSON(t *testing.T) {
	msgs, err := Draft{Headers: []string{"a=b=c"}, HeadersJSON: `{"x=y": "1=2", "n": 7, "big": 1.5, "ok": true, "comma,name": "a,b"}`}.Read(strings.NewReader("body"))
	if err != nil || len(msgs) != 1 {
		t.Fatal(err)
	}
	h := msgs[0].Headers
	n, isInt := h.Int("n")
	if h.String("a") != "b=c" || h.String("x=y") != "1=2" || h.String("comma,name") != "a,b" || !isInt || n != 7 {
		t.Errorf("%v", h)
	}
	for _, text := range []string{"[1]", "null", "{", `{"a": [1]}`, `{"a": null}`, `{"": "x"}`, `{"a":"b"} {"c":"d"}`, `{"a": 1e999}`} {
		if _, err := (Draft{HeadersJSON: text}).Read(strings.NewReader("body")); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
