package gateway

import (
	"encoding/json"
	"strings"
	"testing"
)

// What a viewer without a token sees has no texts, nor anything that this version does not know.
func TestBare(t *testing.T) {
	const container = `{"instance":"a","name":"orders","state":"paused","rate":2,"backlog":9007199254740993,"reason":"secret","new":"secret",
		"paused":{"at":"2026-01-31T06:00:00Z","by":"secret","reason":"secret"},"limited":{"by":"pause","text":"secret","who":"secret","new":"secret"},
		"workers":{"now":3,"limit":"secret","reason":"secret"},"throttle":{"permits":5,"operator":{"by":"secret"},"new":"secret"}}`
	for kind, row := range map[string]struct{ in, keeps string }{
		"container": {container, `"backlog":9007199254740993`},
		"status":    {`{"instance":"a","new":"secret","containers":[` + container + `]}`, `"name":"orders"`},
		"event":     {`{"id":7,"kind":"operator","code":"panic","text":"secret","by":"secret","key":"secret","message_id":"secret","reason":"secret","error":"secret","new":"secret"}`, `"code":"panic"`},
		"job":       {`{"id":"j1","state":"failed","by":"secret","reason":"secret","error":"secret","new":"secret"}`, `"state":"failed"`},
		"history":   {`{"container":"orders","at":[1],"scaled":[{"from":1,"to":2,"reason":"secret","new":"secret"}],"new":"secret"}`, `"to":2`},
		"instance":  {`{"instance":"a","version":"1.2","error":"secret","new":"secret"}`, `"version":"1.2"`},
		"points":    {`{"instance":"a","points":[{"container":"orders","in":2}],"new":"secret"}`, `"in":2`},
		"new":       {`{"new":"secret"}`, `{}`},
	} {
		v, ok := decode([]byte(row.in))
		if !ok {
			t.Fatal(row.in)
		}
		raw, err := json.Marshal(bare(kind, v))
		if err != nil || strings.Contains(string(raw), "secret") || !strings.Contains(string(raw), row.keeps) {
			t.Errorf("%s: %s, %v", kind, raw, err)
		}
	}
}
