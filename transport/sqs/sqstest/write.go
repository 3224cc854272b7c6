package sqstest

import (
	"encoding/base64"
	"strconv"
)

// written is an answer that writes itself. Those that come by the thousand do.
type written interface{ append(b []byte) []byte }

const hexDigits = "0123456789abcdef"

// appendText appends a text, which is valid UTF-8, as a JSON string.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}

// appendMember appends a member of an object, not the first one: `,"name":"value"`.
func appendMember(b []byte, name, value string) []byte {
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `":`...)
	return appendText(b, value)
}

// appendSome is appendMember where there is a value.
func appendSome(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendMember(b, name, value)
}

// appendList appends the members of a list.
func appendList[T any](b []byte, list []T, element func([]byte, *T) []byte) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, &list[i])
	}
	return append(b, ']')
}

func appendFailed(b []byte, failed []failure) []byte {
	if len(failed) == 0 {
		return b
	}
	b = append(b, `,"Failed":`...)
	return appendList(b, failed, func(b []byte, f *failure) []byte {
		b = appendText(append(b, `{"Id":`...), f.Id)
		b = strconv.AppendBool(append(b, `,"SenderFault":`...), f.SenderFault)
		return append(appendMember(appendMember(b, "Code", f.Code), "Message", f.Message), '}')
	})
}

func (o sendBatchOutput) append(b []byte) []byte {
	b = appendList(append(b, `{"Successful":`...), o.Successful, func(b []byte, r *sendResult) []byte {
		b = appendText(append(b, `{"Id":`...), r.Id)
		b = appendMember(appendMember(b, "MessageId", r.MessageId), "MD5OfMessageBody", r.MD5OfMessageBody)
		b = appendSome(b, "MD5OfMessageAttributes", r.MD5OfMessageAttributes)
		b = appendSome(b, "MD5OfMessageSystemAttributes", r.MD5OfMessageSystemAttributes)
		return append(appendSome(b, "SequenceNumber", r.SequenceNumber), '}')
	})
	return append(appendFailed(b, o.Failed), '}')
}

func (o handleBatchOutput) append(b []byte) []byte {
	b = appendList(append(b, `{"Successful":`...), o.Successful, func(b []byte, r *handleResult) []byte {
		return append(appendText(append(b, `{"Id":`...), r.Id), '}')
	})
	return append(appendFailed(b, o.Failed), '}')
}

func (o receiveOutput) append(b []byte) []byte {
	if len(o.Messages) == 0 {
		return append(b, '{', '}')
	}
	b = appendList(append(b, `{"Messages":`...), o.Messages, func(b []byte, r *received) []byte {
		b = appendText(append(b, `{"MessageId":`...), r.MessageId)
		b = appendMember(appendMember(b, "ReceiptHandle", r.ReceiptHandle), "MD5OfBody", r.MD5OfBody)
		b = appendMember(b, "Body", r.Body)
		b = appendSystem(b, r.Attributes)
		b = appendSome(b, "MD5OfMessageAttributes", r.MD5OfMessageAttributes)
		return append(appendAttributes(b, r.MessageAttributes), '}')
	})
	return append(b, '}')
}

func appendSystem(b []byte, attrs map[string]string) []byte {
	if len(attrs) == 0 {
		return b
	}
	b = append(b, `,"Attributes":{`...)
	first := true
	for name, v := range attrs {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendText(append(appendText(b, name), ':'), v)
	}
	return append(b, '}')
}

func appendAttributes(b []byte, attrs map[string]attribute) []byte {
	if len(attrs) == 0 {
		return b
	}
	b = append(b, `,"MessageAttributes":{`...)
	first := true
	for name, a := range attrs {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendText(b, name), `:{"DataType":`...)
		b = appendText(b, a.DataType)
		if a.StringValue != nil {
			b = appendMember(b, "StringValue", *a.StringValue)
		}
		if len(a.BinaryValue) > 0 {
			b = append(b, `,"BinaryValue":"`...)
			b = append(base64.StdEncoding.AppendEncode(b, a.BinaryValue), '"')
		}
		b = append(b, '}')
	}
	return append(b, '}')
}
