package bridge

import (
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func TestTheRule(t *testing.T) {
	for name, like := range map[string]struct {
		facts
		want action
	}{
		"a new message":                        {facts{}, forward},
		"from another bridge":                  {facts{hops: 3}, forward},
		"it came from the target":              {facts{viaTarget: true, hops: 1}, drop},
		"so says the ledger":                   {facts{loops: true}, drop},
		"confirmed before the crash":           {facts{done: true, hops: maxHops, keyParked: true}, skip},
		"a loop of many places":                {facts{viaTarget: true, hops: maxHops}, drop},
		"a loop behind a parked message":       {facts{viaTarget: true, keyParked: true}, drop},
		"too many places":                      {facts{hops: maxHops}, parkHops},
		"one fewer":                            {facts{hops: maxHops - 1}, forward},
		"behind a parked message":              {facts{keyParked: true}, parkBehind},
		"expired":                              {facts{expired: true}, parkExpired},
		"expired, behind a parked message":     {facts{expired: true, keyParked: true}, parkExpired},
		"expired, and it came from the target": {facts{expired: true, viaTarget: true}, drop},
		"copied headers":                       {facts{copied: true}, rename},
		"copied headers, behind a parked one":  {facts{copied: true, keyParked: true}, parkBehind},
	} {
		if got := like.decide(); got != like.want {
			t.Errorf("%s: %d, want %d", name, got, like.want)
		}
	}
}

// The way is bound to the content: copied to another message it is not believed.
func TestTheWayBelongsToItsMessage(t *testing.T) {
	from := token(transport.Description{Transport: "rabbitmq", Address: "host:5672", Namespace: "a b", Name: "or|ders"})
	to := token(transport.Description{Transport: "rabbitmq", Address: "host:5672", Namespace: "a b", Name: "orders"})
	m := longshore.Message{Key: []byte("k"), Body: []byte("one"), Headers: longshore.Headers{{Name: "tenant", Value: "t"}}}
	first, _ := viaOf(m.Headers, digest(&m))
	m.Headers = append(m.Headers, longshore.Header{Name: longshore.HeaderVia, Value: first.through(from)})
	second, copied := viaOf(m.Headers, digest(&m))
	if copied || !second.has(from) || second.has(to) || len(second.places) != 1 {
		t.Errorf("%+v, copied %v", second, copied)
	}
	m.Headers[1].Value = second.through(to)
	if third, _ := viaOf(m.Headers, digest(&m)); len(third.places) != 2 || !third.has(to) || !third.has(from) {
		t.Errorf("%+v", third)
	}
	other := m
	other.Body = []byte("two")
	if v, copied := viaOf(other.Headers, digest(&other)); !copied || len(v.places) != 0 {
		t.Errorf("%+v, copied %v", v, copied)
	}
	for _, foreign := range []any{"x", int64(7), "ffff", []byte("zz zz"), "00112233445566778899aabbccddeeff00112233 place"} {
		if v, copied := viaOf(longshore.Headers{{Name: longshore.HeaderVia, Value: foreign}}, digest(&m)); !copied || len(v.places) != 0 {
			t.Errorf("%v: %+v, copied %v", foreign, v, copied)
		}
	}
}

// What brokers may change is left out of the digest, and nothing else is.
func TestTheDigestIsOfWhatTheApplicationSent(t *testing.T) {
	m := func(change func(*longshore.Message)) [16]byte {
		m := longshore.Message{ID: "1", Key: []byte("k"), Body: []byte("b"), Type: "t", Headers: longshore.Headers{{Name: "n", Value: "v"}, {Name: "i", Value: int64(1)}}}
		change(&m)
		return digest(&m)
	}
	plain := m(func(*longshore.Message) {})
	for name, change := range map[string]func(*longshore.Message){
		"its own header": func(m *longshore.Message) {
			m.Headers = append(m.Headers, longshore.Header{Name: longshore.HeaderVia, Value: "x"})
		},
		"deaths":            func(m *longshore.Message) { m.Headers = append(m.Headers, longshore.Header{Name: "x-death"}) },
		"bytes, not text":   func(m *longshore.Message) { m.Headers[0].Value = []byte("v") },
		"a smaller integer": func(m *longshore.Message) { m.Headers[1].Value = int8(1) },
		"mode":              func(m *longshore.Message) { m.DeliveryMode = 1 },
	} {
		if m(change) != plain {
			t.Errorf("%s changes it", name)
		}
	}
	for name, change := range map[string]func(*longshore.Message){
		"body":           func(m *longshore.Message) { m.Body = []byte("c") },
		"no body":        func(m *longshore.Message) { m.Body = nil },
		"empty body":     func(m *longshore.Message) { m.Body = []byte{} },
		"key":            func(m *longshore.Message) { m.Key = nil },
		"type":           func(m *longshore.Message) { m.Type = "" },
		"header":         func(m *longshore.Message) { m.Headers[0].Value = "w" },
		"header's name":  func(m *longshore.Message) { m.Headers[0].Name = "m" },
		"order":          func(m *longshore.Message) { m.Headers[0], m.Headers[1] = m.Headers[1], m.Headers[0] },
		"one more":       func(m *longshore.Message) { m.Headers = append(m.Headers, longshore.Header{Name: "z", Value: nil}) },
		"table":          func(m *longshore.Message) { m.Headers[0].Value = longshore.Headers{{Name: "n", Value: "v"}} },
		"text of number": func(m *longshore.Message) { m.Headers[1].Value = "1" },
	} {
		if m(change) == plain {
			t.Errorf("%s does not change it", name)
		}
	}
	if m(func(m *longshore.Message) { m.Body = nil }) == m(func(m *longshore.Message) { m.Body = []byte{} }) {
		t.Error("no body is an empty body")
	}
}
