package kafka

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/longshore-go/longshore"
)

// maxDepth bounds what others may nest.
const maxDepth = 32

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
		return result(parseTime(text))
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

func result[T any](v T, ok bool) (any, bool) { return v, ok }
