package amqp

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
)

// unpackHeaders puts the headers back into their order. What the broker or others
// added on the way stays behind them.
func unpackHeaders(packed [][]any, native longshore.Headers) (longshore.Headers, bool) {
	known := map[string]bool{}
	out := make(longshore.Headers, 0, len(packed))
	for _, p := range packed {
		h, ok := unpackHeader(p, native)
		if !ok {
			return nil, false
		}
		if len(p) == 1 && !native.Has(h.Name) {
			continue // somebody took it out on the way
		}
		known[h.Name] = true
		out = append(out, h)
	}
	for _, x := range native {
		if !known[x.Name] {
			out = append(out, x)
		}
	}
	return out, true
}

func unpackHeader(p []any, native longshore.Headers) (h longshore.Header, ok bool) {
	if len(p) != 1 && len(p) != 3 {
		return h, false
	}
	if h.Name, ok = unpackName(p[0]); !ok {
		return h, false
	}
	if len(p) == 1 {
		h.Value, _ = native.Get(h.Name)
		return h, true
	}
	kind, _ := p[1].(string)
	h.Value, ok = unpackValue(kind, p[2], 0)
	return h, ok
}

func unpackName(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case map[string]any:
		text, _ := v["b64"].(string)
		b, err := base64.StdEncoding.DecodeString(text)
		return string(b), err == nil
	}
	return "", false
}

func unpackValue(kind string, v any, depth int) (any, bool) {
	text, isText := v.(string)
	switch {
	case depth > maxDepth:
		return nil, false
	case kind == "z":
		return nil, v == nil
	case kind == "bool":
		b, ok := v.(bool)
		return b, ok
	case kind == "arr":
		return unpackArray(v, depth)
	case kind == "tbl":
		return unpackTable(v, depth)
	case !isText:
		return nil, false
	case kind == "str":
		return text, true
	case kind == "str64", kind == "bin":
		b, err := base64.StdEncoding.DecodeString(text)
		if kind == "bin" {
			return b, err == nil
		}
		return string(b), err == nil
	case kind == "f32":
		f, err := strconv.ParseFloat(text, 32)
		return float32(f), err == nil
	case kind == "f64":
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	case kind == "dec":
		var d longshore.Decimal
		_, err := fmt.Sscanf(text, "%d/%d", &d.Value, &d.Scale)
		return d, err == nil
	case kind == "ts":
		sec, nano, _ := strings.Cut(text, ".")
		s, err1 := strconv.ParseInt(sec, 10, 64)
		n, err2 := strconv.ParseInt(nano, 10, 64)
		return time.Unix(s, n), err1 == nil && err2 == nil
	}
	return unpackInt(kind, text)
}

func unpackInt(kind, text string) (any, bool) {
	if len(kind) < 2 {
		return nil, false
	}
	bits, err := strconv.Atoi(kind[1:])
	if err != nil {
		return nil, false
	}
	i, ierr := strconv.ParseInt(text, 10, bits)
	u, uerr := strconv.ParseUint(text, 10, bits)
	switch kind {
	case "i8":
		return int8(i), ierr == nil
	case "i16":
		return int16(i), ierr == nil
	case "i32":
		return int32(i), ierr == nil
	case "i64":
		return i, ierr == nil
	case "u8":
		return uint8(u), uerr == nil
	case "u16":
		return uint16(u), uerr == nil
	case "u32":
		return uint32(u), uerr == nil
	case "u64":
		return u, uerr == nil
	}
	return nil, false
}

func unpackArray(v any, depth int) (any, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]any, len(list))
	for i := range list {
		pair, _ := list[i].([]any)
		if len(pair) != 2 {
			return nil, false
		}
		kind, _ := pair[0].(string)
		if out[i], ok = unpackValue(kind, pair[1], depth+1); !ok {
			return nil, false
		}
	}
	return out, true
}

func unpackTable(v any, depth int) (any, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make(longshore.Headers, len(list))
	for i := range list {
		entry, _ := list[i].([]any)
		if len(entry) != 3 {
			return nil, false
		}
		if out[i].Name, ok = unpackName(entry[0]); !ok {
			return nil, false
		}
		kind, _ := entry[1].(string)
		if out[i].Value, ok = unpackValue(kind, entry[2], depth+1); !ok {
			return nil, false
		}
	}
	return out, true
}
