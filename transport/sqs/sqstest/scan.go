package sqstest

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// scanner reads the requests that come by the thousand: the members that they
// usually have, in any order. At anything else it gives up, and encoding/json reads
// the request and says what is wrong.
type scanner struct {
	b   []byte
	i   int
	bad bool
}

// scanned is a request that a scanner can read.
type scanned interface{ scan(s *scanner) }

// scan reports whether a request was read; if not, it may be half filled.
func scan(in scanned, body []byte) bool {
	s := &scanner{b: body}
	in.scan(s)
	s.space()
	return !s.bad && s.i == len(s.b)
}

func (s *scanner) fail() { s.bad, s.i = true, len(s.b) }

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
}

// take skips spaces and the character c, if it comes next.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) want(c byte) {
	if !s.take(c) {
		s.fail()
	}
}

// object calls member for each name; it has to read the value. The name is valid
// during the call.
func (s *scanner) object(member func(name []byte)) {
	s.want('{')
	if s.take('}') {
		return
	}
	for !s.bad {
		name, plain := s.quoted()
		if !plain {
			s.fail()
			return
		}
		s.want(':')
		if s.bad {
			return
		}
		member(name)
		if !s.take(',') {
			s.want('}')
			return
		}
	}
}

// array calls element for each; it has to read it.
func (s *scanner) array(element func()) {
	s.want('[')
	if s.take(']') {
		return
	}
	for !s.bad {
		element()
		if !s.take(',') {
			s.want(']')
			return
		}
	}
}

// quoted reads a string and returns what is between the quotes, plain if that is
// also its value.
func (s *scanner) quoted() (raw []byte, plain bool) {
	s.want('"')
	from, plain := s.i, true
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			raw = s.b[from:s.i]
			s.i++
			return raw, plain
		case c == '\\':
			plain = false
			s.i++
		case c < ' ':
			s.fail()
			return nil, false
		}
	}
	s.fail()
	return nil, false
}

func (s *scanner) text() string {
	raw, plain := s.quoted()
	switch {
	case s.bad:
		return ""
	case !utf8.Valid(raw):
		s.fail()
		return ""
	case plain:
		return string(raw)
	}
	return s.unescaped(raw)
}

func (s *scanner) unescaped(raw []byte) string {
	var out strings.Builder
	out.Grow(len(raw))
	for {
		head, tail, found := bytes.Cut(raw, []byte{'\\'})
		out.Write(head)
		if !found {
			return out.String()
		}
		i := bytes.IndexByte([]byte(`"\/nrtbf`), tail[0])
		if i < 0 {
			s.fail()
			return ""
		}
		out.WriteByte("\"\\/\n\r\t\b\f"[i])
		raw = tail[1:]
	}
}

func (s *scanner) textPointer() *string {
	t := s.text()
	return &t
}

func (s *scanner) texts() []string {
	out := []string{}
	s.array(func() { out = append(out, s.text()) })
	return out
}

// number reads a whole number of up to nine digits.
func (s *scanner) number() *int {
	negative := s.take('-')
	n, from := 0, s.i
	for ; s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9'; s.i++ {
		n = n*10 + int(s.b[s.i]-'0')
		if s.i-from > 8 {
			s.fail()
			return nil
		}
	}
	if s.i == from || s.b[from] == '0' && s.i > from+1 {
		s.fail()
	}
	if negative {
		n = -n
	}
	return &n
}

func (s *scanner) bytes() []byte {
	b, err := base64.StdEncoding.DecodeString(s.text())
	if err != nil {
		s.fail()
	}
	return b
}

func (s *scanner) attributes() map[string]attribute {
	out := map[string]attribute{}
	s.object(func(name []byte) {
		var a attribute
		key := string(name)
		s.object(func(name []byte) {
			switch string(name) {
			case "DataType":
				a.DataType = s.text()
			case "StringValue":
				a.StringValue = s.textPointer()
			case "BinaryValue":
				a.BinaryValue = s.bytes()
			default:
				s.fail()
			}
		})
		if !utf8.ValidString(key) {
			s.fail()
		}
		out[key] = a
	})
	return out
}

func (in *sendBatchInput) scan(s *scanner) {
	s.object(func(name []byte) {
		switch {
		case string(name) == "QueueUrl":
			in.QueueUrl = s.text()
		case string(name) == "Entries" && in.Entries == nil:
			in.Entries = make([]sendEntry, 0, maxBatch)
			s.array(func() {
				var e sendEntry
				e.scan(s)
				in.Entries = append(in.Entries, e)
			})
		default:
			s.fail()
		}
	})
}

func (e *sendEntry) scan(s *scanner) {
	s.object(func(name []byte) {
		switch string(name) {
		case "Id":
			e.Id = s.text()
		case "MessageBody":
			e.MessageBody = s.textPointer()
		case "DelaySeconds":
			e.DelaySeconds = s.number()
		case "MessageGroupId":
			e.MessageGroupId = s.text()
		case "MessageDeduplicationId":
			e.MessageDeduplicationId = s.text()
		case "MessageAttributes":
			e.MessageAttributes = s.attributes()
		case "MessageSystemAttributes":
			e.MessageSystemAttributes = s.attributes()
		default:
			s.fail()
		}
	})
}

func (in *handleBatchInput) scan(s *scanner) {
	s.object(func(name []byte) {
		switch {
		case string(name) == "QueueUrl":
			in.QueueUrl = s.text()
		case string(name) == "Entries" && in.Entries == nil:
			in.Entries = make([]handleEntry, 0, maxBatch)
			s.array(func() {
				var e handleEntry
				e.scan(s)
				in.Entries = append(in.Entries, e)
			})
		default:
			s.fail()
		}
	})
}

func (e *handleEntry) scan(s *scanner) {
	s.object(func(name []byte) {
		switch string(name) {
		case "Id":
			e.Id = s.text()
		case "ReceiptHandle":
			e.ReceiptHandle = s.text()
		case "VisibilityTimeout":
			e.VisibilityTimeout = s.number()
		default:
			s.fail()
		}
	})
}

func (in *receiveInput) scan(s *scanner) {
	s.object(func(name []byte) {
		switch string(name) {
		case "QueueUrl":
			in.QueueUrl = s.text()
		case "AttributeNames":
			in.AttributeNames = s.texts()
		case "MessageSystemAttributeNames":
			in.MessageSystemAttributeNames = s.texts()
		case "MessageAttributeNames":
			in.MessageAttributeNames = s.texts()
		case "MaxNumberOfMessages":
			in.MaxNumberOfMessages = s.number()
		case "VisibilityTimeout":
			in.VisibilityTimeout = s.number()
		case "WaitTimeSeconds":
			in.WaitTimeSeconds = s.number()
		case "ReceiveRequestAttemptId":
			in.ReceiveRequestAttemptId = s.text()
		default:
			s.fail()
		}
	})
}
