package envelope

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore"
)

// maxDepth is how deep arrays and tables may nest in a text that is read.
const maxDepth = 40

func packEntry(x Entry) []any {
	if x.Native {
		return []any{packName(x.Name)}
	}
	kind, v := packValue(x.Value)
	return []any{packName(x.Name), kind, v}
}

// packName marks a name that JSON cannot carry.
func packName(s string) any {
	if utf8.ValidString(s) {
		return s
	}
	return map[string]string{"b64": base64.StdEncoding.EncodeToString([]byte(s))}
}

// packValue is the type code of a value and its form in JSON: text, except for
// arrays and tables.
func packValue(v any) (kind string, packed any) {
	switch v := v.(type) {
	case []any:
		a := make([][]any, len(v))
		for i := range v {
			k, x := packValue(v[i])
			a[i] = []any{k, x}
		}
		return "arr", a
	case longshore.Headers:
		a := make([][]any, len(v))
		for i := range v {
			a[i] = packEntry(Entry{Header: v[i]})
		}
		return "tbl", a
	case nil:
		return "z", nil
	}
	kind, text, _ := Text(v)
	return kind, text
}

// Text is the type code of a simple value and the value as text; false for nil,
// arrays, tables and kinds that no message can have.
func Text(v any) (kind, text string, ok bool) {
	switch v := v.(type) {
	case bool:
		return "bool", strconv.FormatBool(v), true
	case string:
		if utf8.ValidString(v) {
			return "str", v, true
		}
		return "str64", base64.StdEncoding.EncodeToString([]byte(v)), true
	case []byte:
		return "bin", base64.StdEncoding.EncodeToString(v), true
	case int8, int16, int32, int64:
		return fmt.Sprintf("%T", v)[:1] + strings.TrimPrefix(fmt.Sprintf("%T", v), "int"), fmt.Sprint(v), true
	case uint8, uint16, uint32, uint64:
		return "u" + strings.TrimPrefix(fmt.Sprintf("%T", v), "uint"), fmt.Sprint(v), true
	case int:
		return "i64", strconv.Itoa(v), true
	case uint:
		return "u64", strconv.FormatUint(uint64(v), 10), true
	case float32:
		return "f32", strconv.FormatFloat(float64(v), 'g', -1, 32), true
	case float64:
		return "f64", strconv.FormatFloat(v, 'g', -1, 64), true
	case longshore.Decimal:
		return "dec", v.String(), true
	case time.Time:
		return "ts", fmt.Sprintf("%d.%09d", v.Unix(), v.Nanosecond()), true
	}
	return "", "", false
}

// Value is the way back from [Text]; false if the text is not of the kind.
func Value(kind, text string) (any, bool) {
	switch kind {
	case "str":
		return text, true
	case "str64":
		b, err := base64.StdEncoding.DecodeString(text)
		return string(b), err == nil
	case "bin":
		b, err := base64.StdEncoding.DecodeString(text)
		return b, err == nil
	case "bool":
		b, err := strconv.ParseBool(text)
		return b, err == nil
	case "f32":
		f, err := strconv.ParseFloat(text, 32)
		return float32(f), err == nil
	case "f64":
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	case "dec":
		return decimal(text)
	case "ts":
		return instant(text)
	}
	return integer(kind, text)
}

func decimal(text string) (any, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole+fraction, 10, 32)
	return longshore.Decimal{Scale: uint8(len(fraction)), Value: int32(n)}, err == nil && len(fraction) <= math.MaxUint8 //nolint:gosec // checked
}

func instant(text string) (any, bool) {
	sec, nano, _ := strings.Cut(text, ".")
	s, err1 := strconv.ParseInt(sec, 10, 64)
	n, err2 := strconv.ParseInt(nano, 10, 64)
	return time.Unix(s, n).UTC(), err1 == nil && err2 == nil && n >= 0 && n < int64(time.Second)
}

func integer(kind, text string) (any, bool) {
	if len(kind) < 2 {
		return nil, false
	}
	bits, err := strconv.Atoi(kind[1:])
	if err != nil {
		return nil, false
	}
	i, signed := strconv.ParseInt(text, 10, bits)
	u, unsigned := strconv.ParseUint(text, 10, bits)
	switch kind {
	case "i8":
		return int8(i), signed == nil //nolint:gosec // parsed with so many bits
	case "i16":
		return int16(i), signed == nil //nolint:gosec // as above
	case "i32":
		return int32(i), signed == nil //nolint:gosec // as above
	case "i64":
		return i, signed == nil
	case "u8":
		return uint8(u), unsigned == nil //nolint:gosec // as above
	case "u16":
		return uint16(u), unsigned == nil //nolint:gosec // as above
	case "u32":
		return uint32(u), unsigned == nil //nolint:gosec // as above
	case "u64":
		return u, unsigned == nil
	}
	return nil, false
}

func unpackEntry(p []any) (x Entry, ok bool) {
	if len(p) == 0 {
		return x, false
	}
	if x.Name, ok = unpackName(p[0]); !ok {
		return x, false
	}
	switch len(p) {
	case 1:
		x.Native = true
		return x, true
	case 3:
		kind, _ := p[1].(string)
		x.Value, ok = unpackValue(kind, p[2], 0)
		return x, ok
	}
	return x, false
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
	if depth > maxDepth {
		return nil, false
	}
	switch kind {
	case "z":
		return nil, v == nil
	case "arr", "tbl":
		return unpackList(kind, v, depth+1)
	}
	switch v := v.(type) {
	case string:
		return Value(kind, v)
	case bool: // both are read
		return v, kind == "bool"
	case json.Number:
		return Value(kind, v.String())
	}
	return nil, false
}

// unpackList reads an array of [type, value] or a table of [name, type, value].
func unpackList(kind string, v any, depth int) (any, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	array, table := make([]any, 0, len(list)), make(longshore.Headers, 0, len(list))
	for _, item := range list {
		parts, _ := item.([]any)
		var name string
		if kind == "tbl" && len(parts) == 3 {
			if name, ok = unpackName(parts[0]); !ok {
				return nil, false
			}
			parts = parts[1:]
		}
		if len(parts) != 2 {
			return nil, false
		}
		k, _ := parts[0].(string)
		value, ok := unpackValue(k, parts[1], depth)
		if !ok {
			return nil, false
		}
		array = append(array, value)
		table = append(table, longshore.Header{Name: name, Value: value})
	}
	if kind == "arr" {
		return array, true
	}
	return table, true
}
