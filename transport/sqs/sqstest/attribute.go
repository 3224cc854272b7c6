package sqstest

import (
	"crypto/md5" //nolint:gosec // the protocol's checksum
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
)

// checkAttributes refuses message attributes that SQS refuses and returns their
// size.
func checkAttributes(attrs map[string]attribute) (size int, err *apiError) {
	if len(attrs) > maxAttributes {
		return 0, refuse("InvalidParameterValue", "Number of message attributes [%d] exceeds the allowed maximum [%d].", len(attrs), maxAttributes)
	}
	for name, a := range attrs {
		n, err := checkAttribute(name, &a)
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, nil
}

func checkAttribute(name string, a *attribute) (size int, err *apiError) {
	if !legalAttributeName(name) {
		return 0, refuse("InvalidParameterValue", "Message (user) attribute name %q contains invalid characters or is not allowed.", name)
	}
	kind, _, _ := strings.Cut(a.DataType, ".")
	if len(a.DataType) > 256 || !legalText(a.DataType) {
		return 0, refuse("InvalidParameterValue", "The type of message (user) attribute %q is too long or contains invalid characters.", name)
	}
	size = len(name) + len(a.DataType)
	switch kind {
	case "String", "Number":
		switch {
		case a.StringValue == nil || *a.StringValue == "":
			return 0, refuse("InvalidParameterValue", "Message (user) attribute %q must contain a non-empty value of type %q.", name, kind)
		case a.BinaryValue != nil:
			return 0, refuse("InvalidParameterValue", "Message (user) attribute %q has a value of another type than %q.", name, kind)
		case !legalText(*a.StringValue):
			return 0, refuse("InvalidMessageContents", "Message (user) attribute %q contains invalid characters.", name)
		case kind == "Number" && !legalNumber(*a.StringValue):
			return 0, refuse("InvalidParameterValue", "Can't cast the value of message (user) attribute %q to a number.", name)
		}
		return size + len(*a.StringValue), nil
	case "Binary":
		if len(a.BinaryValue) == 0 || a.StringValue != nil {
			return 0, refuse("InvalidParameterValue", "Message (user) attribute %q must contain a non-empty value of type \"Binary\".", name)
		}
		return size + len(a.BinaryValue), nil
	}
	return 0, refuse("InvalidParameterValue", "The type of message (user) attribute %q is invalid. You must use only the following supported type prefixes: Binary, Number, String.", name)
}

// md5Of is the hexadecimal checksum of a text.
func md5Of(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // the protocol's checksum
	return hex.EncodeToString(sum[:])
}

// md5OfAttributes is the protocol's checksum of attributes, "" for none.
func md5OfAttributes(attrs map[string]attribute) string {
	if len(attrs) == 0 {
		return ""
	}
	names := make([]string, 0, len(attrs))
	for name := range attrs {
		names = append(names, name)
	}
	slices.Sort(names)
	var b []byte
	put := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s))) //nolint:gosec // far below 4 GiB
		b = append(b, s...)
	}
	for _, name := range names {
		a := attrs[name]
		put(name)
		put(a.DataType)
		if strings.HasPrefix(a.DataType, "Binary") {
			b = append(b, 2)
			put(string(a.BinaryValue))
		} else {
			b = append(b, 1)
			put(*a.StringValue)
		}
	}
	return md5Of(string(b))
}

// selected returns the attributes that a receive asked for: All, .*, a prefix
// with .* or a name.
func selected(attrs map[string]attribute, names []string) map[string]attribute {
	if len(attrs) == 0 || len(names) == 0 {
		return nil
	}
	out := map[string]attribute{}
	for name, a := range attrs {
		for _, want := range names {
			prefix, wild := strings.CutSuffix(want, ".*")
			if want == "All" || want == ".*" || want == name || wild && strings.HasPrefix(name, prefix) {
				out[name] = a
				break
			}
		}
	}
	return out
}
