package spring

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/longshore-go/longshore"
)

// The headers that tell how to read others.
const (
	// HeaderTypeID names the Java class of the body, of spring-amqp and spring-kafka alike.
	HeaderTypeID = "__TypeId__"
	// HeaderJavaType is the same of Spring Cloud AWS.
	HeaderJavaType = "JavaType"
	// HeaderJSONTypes is the map from header to Java class that spring-kafka's
	// DefaultKafkaHeaderMapper writes.
	HeaderJSONTypes = "spring_json_header_types"
)

// HeadersConfig is the configuration of [Headers]. Its zero value is ready for use.
type HeadersConfig struct {
	// Types maps the class in __TypeId__ or JavaType to the type by which handlers know it. A class
	// that is not listed is the type as it stands.
	Types map[string]string
}

// Headers makes of a message from Spring what it would be from one of ours: headers
// that DefaultKafkaHeaderMapper wrote as JSON become values (a quoted string a string,
// java.lang.Integer an int32, a list an array, an object a table), contentType becomes
// the content type where there is none, and __TypeId__ the message's type where there
// is none. Of Spring Cloud AWS, JavaType is the type and an attribute of the data type
// Number.java.lang.Integer a number. A header that is not what its class says stays as
// it came. Messages without these headers pass untouched; a retry or a dead letter keeps
// what was received.
func Headers(cfg HeadersConfig) longshore.Middleware { return &headers{types: cfg.Types} }

type headers struct{ types map[string]string }

func (*headers) Name() string { return "spring-headers" }

// Wrap reads the headers before next sees them.
func (h *headers) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		h.read(d) //nolint:contextcheck // counting a size waits for nothing
		return next.Handle(ctx, d)
	})
}

// WrapBatch does so for each of a batch.
func (h *headers) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		for _, d := range ds {
			h.read(d) //nolint:contextcheck // counting a size waits for nothing
		}
		return next.HandleBatch(ctx, ds)
	})
}

func (h *headers) read(d *longshore.Delivery) {
	if !ofSpring(d.Headers) {
		return
	}
	m := d.Message
	m.Headers = decoded(m.Headers)
	class := m.Headers.String(HeaderTypeID)
	if class == "" {
		class = m.Headers.String(HeaderJavaType)
	}
	if class != "" && m.Type == "" {
		m.Type = class
		if known, ok := h.types[class]; ok {
			m.Type = known
		}
	}
	if kind := m.Headers.String("contentType"); kind != "" && m.ContentType == "" {
		m.ContentType = kind
	}
	d.Replace(m)
}

func ofSpring(h longshore.Headers) bool {
	for i := range h {
		switch h[i].Name {
		case HeaderJSONTypes, HeaderTypeID, HeaderJavaType, "contentType":
			return true
		}
	}
	return false
}

// classesOf are the Java classes of headers: as spring-kafka lists them, or as the data
// types that Spring Cloud AWS gives to numbers, which the transport keeps.
func classesOf(in longshore.Headers) (classes map[string]string) {
	if text := in.String(HeaderJSONTypes); text != "" {
		if json.Unmarshal([]byte(text), &classes) != nil {
			return nil
		}
		return classes
	}
	if !in.Has(HeaderJavaType) || json.Unmarshal([]byte(in.String(headerSQSTypes)), &classes) != nil {
		return nil
	}
	for name, kind := range classes {
		class, number := strings.CutPrefix(kind, "Number.")
		if !number {
			delete(classes, name)
			continue
		}
		classes[name] = class
	}
	return classes
}

// headerSQSTypes is where transport/sqs keeps the data types of foreign attributes.
const headerSQSTypes = "longshore-p-sqs-types"

// decoded is the headers with those replaced whose classes are known.
func decoded(in longshore.Headers) longshore.Headers {
	classes := classesOf(in)
	if len(classes) == 0 {
		return in
	}
	out := make(longshore.Headers, 0, len(in))
	for _, x := range in {
		if x.Name == HeaderJSONTypes {
			continue
		}
		if class, ok := classes[x.Name]; ok {
			x.Value = value(x.Value, class)
		}
		out = append(out, x)
	}
	return out
}

// value reads a header of a Java class. Strings are JSON only where they are quoted:
// it is an option of Spring's mapper.
func value(v any, class string) any {
	raw := []byte(longshore.Headers{{Value: v}}.String(""))
	if b, ok := v.([]byte); ok {
		raw = b
	}
	if len(raw) == 0 || class == "java.lang.String" && raw[0] != '"' {
		return v
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var parsed any
	if dec.Decode(&parsed) != nil || dec.More() {
		return v
	}
	if n, ok := parsed.(json.Number); ok {
		return number(n, class, v)
	}
	return plain(parsed)
}

// number reads a number as its class; v if it is none of that class.
func number(n json.Number, class string, v any) any {
	bits := map[string]int{"java.lang.Byte": 8, "java.lang.Short": 16, "java.lang.Integer": 32}[strings.TrimSpace(class)]
	switch class {
	case "java.lang.Double", "java.lang.Float":
		if f, err := n.Float64(); err == nil {
			return f
		}
		return v
	}
	i, err := n.Int64()
	if err != nil {
		return plain(n)
	}
	switch {
	case bits == 8 && int64(int8(i)) == i: //nolint:gosec // that is the question
		return int8(i) //nolint:gosec // asked before
	case bits == 16 && int64(int16(i)) == i: //nolint:gosec // that is the question
		return int16(i) //nolint:gosec // asked before
	case bits == 32 && int64(int32(i)) == i: //nolint:gosec // that is the question
		return int32(i) //nolint:gosec // asked before
	case bits > 0:
		return v
	}
	return i
}

// plain makes values that a header can hold.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return v.String()
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	case map[string]any:
		return table(v)
	}
	return v
}
