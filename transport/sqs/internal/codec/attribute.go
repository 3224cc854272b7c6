package codec

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/envelope"
)

// headerTypes keeps the types of foreign attributes that the value alone does not
// show, as JSON: {"price": "Number.EUR"}. They are written again when the message
// is published, also after a way through another broker.
const headerTypes = "longshore-p-sqs-types"

// MaxAttributes is how many attributes SQS takes with a message.
const MaxAttributes = 10

// attributeName reports whether SQS takes a name.
func attributeName(s string) bool {
	if s == "" || len(s) > 256 || s[0] == '.' || s[len(s)-1] == '.' || strings.Contains(s, "..") {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	lower := strings.ToLower(s)
	return !strings.HasPrefix(lower, "aws.") && !strings.HasPrefix(lower, "amazon.")
}

func stringAttribute(kind, v string) (types.MessageAttributeValue, bool) {
	return types.MessageAttributeValue{DataType: aws.String(kind), StringValue: aws.String(v)}, v != "" && envelope.LegalText(v)
}

// toAttribute makes an attribute of a header's value; false where SQS has no
// place for it. kind is the type that a foreign attribute had, "" for none.
func toAttribute(v any, kind string) (types.MessageAttributeValue, bool) {
	base, _, _ := strings.Cut(kind, ".")
	switch v := v.(type) {
	case []byte:
		if base != "Binary" {
			kind = "Binary"
		}
		return types.MessageAttributeValue{DataType: &kind, BinaryValue: v}, len(v) > 0
	case string:
		if base != "String" && (base != "Number" || !isNumber(v)) {
			kind = "String"
		}
		return stringAttribute(kind, v)
	case bool:
		return stringAttribute("String.bool", strconv.FormatBool(v))
	case time.Time:
		if y := v.UTC().Year(); y < 0 || y > 9999 {
			return types.MessageAttributeValue{}, false
		}
		return stringAttribute("String.ts", v.UTC().Format(time.RFC3339Nano))
	case nil, []any, longshore.Headers:
		return types.MessageAttributeValue{}, false
	}
	code, text, ok := envelope.Text(v)
	if !ok || strings.ContainsAny(text, "NI") { // NaN, Inf
		return types.MessageAttributeValue{}, false
	}
	if code == "i64" && kind == "Number" {
		return stringAttribute(kind, text)
	}
	class, ok := numberClasses()[code]
	if !ok {
		return types.MessageAttributeValue{}, false
	}
	return stringAttribute("Number."+class, text)
}

// numberClasses are the labels of our numbers: those that Spring Cloud AWS writes and
// reads. It refuses a message with a number whose label is not a Java class, so unsigned
// ones, which Java does not have, go in the envelope.
func numberClasses() map[string]string {
	return map[string]string{"i8": "java.lang.Byte", "i16": "java.lang.Short", "i32": "java.lang.Integer", "i64": "java.lang.Long",
		"f32": "java.lang.Float", "f64": "java.lang.Double", "dec": "java.math.BigDecimal"}
}

// isNumber: SQS refuses a Number that is none.
func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return (err == nil || errors.Is(err, strconv.ErrRange)) && !strings.ContainsAny(s, "xXpPnNiI_")
}

// fromAttribute is the way back. kind is the type if the value does not show it.
func fromAttribute(a *types.MessageAttributeValue) (v any, kind string) {
	full := aws.ToString(a.DataType)
	base, label, _ := strings.Cut(full, ".")
	text := aws.ToString(a.StringValue)
	switch base {
	case "Binary":
		if label != "" {
			kind = full
		}
		if a.BinaryValue == nil {
			return []byte{}, kind
		}
		return a.BinaryValue, kind
	case "Number":
		return number(text, label, full)
	}
	switch label {
	case "":
		return text, ""
	case "bool":
		if text == "true" || text == "false" {
			return text == "true", ""
		}
	case "ts":
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil && t.UTC().Format(time.RFC3339Nano) == text {
			return t, ""
		}
	}
	return text, full
}

// number reads labelled numbers, and whole ones without a label. Others stay
// text, so that no digit changes.
func number(text, label, full string) (v any, kind string) {
	if label == "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
			return n, "Number"
		}
		return text, full
	}
	for code, class := range numberClasses() {
		if class != label {
			continue
		}
		if v, ok := envelope.Value(code, text); ok {
			if kind, same, _ := envelope.Text(v); kind == code && same == text {
				return v, ""
			}
		}
	}
	return text, full
}

// typesOf reads the header of types.
func typesOf(h longshore.Headers) map[string]string {
	text := h.String(headerTypes)
	if text == "" {
		return nil
	}
	var m map[string]string
	if json.Unmarshal([]byte(text), &m) != nil {
		return nil
	}
	for name, kind := range m {
		switch base, _, _ := strings.Cut(kind, "."); base {
		case "String", "Number", "Binary":
			if len(kind) <= 256 && envelope.LegalText(kind) {
				continue
			}
		}
		delete(m, name)
	}
	return m
}

// sizeOf is what SQS counts of an attribute.
func sizeOf(name string, a *types.MessageAttributeValue) int {
	return len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
}
