package codec

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/envelope"
)

// Encoded is a message as SQS takes it.
type Encoded struct {
	Body   string // text, as SQS takes nothing else
	Group  string // message group; "" for none
	Size   int    // as SQS counts it, attributes included
	Binary bool   // the body is not text and had to be packed, which makes it a third larger

	attrs map[string]types.MessageAttributeValue // at most ten
	trace string                                 // the X-Ray header, which SQS keeps apart from the others
	dedup string                                 // deduplication id, on FIFO queues
}

// Options are what depends on the queue that a message goes to.
type Options struct {
	FIFO bool // the queue needs a group and a deduplication id
	// NoGroup sends no group id to a standard queue, for servers that refuse it; the key
	// travels in the envelope.
	NoGroup bool
	// Reserve is how many attributes are kept free.
	Reserve int
}

// Encode makes what is sent of a message, or refuses it.
func Encode(m *longshore.Message, o Options) (*Encoded, error) {
	if o.NoGroup && !o.FIFO && m.Key != nil {
		bare := *m
		bare.Key = nil
		return encode(&bare, m.Key, false, 0)
	}
	return encode(m, nil, o.FIFO, o.Reserve)
}

// encode packs key into the envelope if it is not nil.
func encode(m *longshore.Message, key []byte, fifo bool, reserve int) (*Encoded, error) {
	if err := m.Headers.Check(); err != nil {
		return nil, err
	}
	if m.Expiration < 0 {
		return nil, refused(longshore.CodeRefused, fmt.Errorf("expiration is %s, must be 0 or more", m.Expiration))
	}
	e := &Encoded{attrs: map[string]types.MessageAttributeValue{}}
	var env envelope.Envelope
	e.Body, env.Body = envelope.PackBody(m.Body)
	e.Binary = env.Body == envelope.Base64
	env.Key, env.HasKey = key, key != nil
	e.address(m, fifo, &env)
	e.properties(m, &env)
	e.headers(m.Headers, &env, reserve)
	if text := env.Encode(); text != "" {
		a, ok := stringAttribute("String.longshore", text)
		if !ok {
			return nil, refused(longshore.CodeInternal, errors.New("the envelope is not legal text"))
		}
		e.attrs[envelope.Header] = a
	}
	e.Size = len(e.Body)
	for name, a := range e.attrs {
		e.Size += sizeOf(name, &a)
	}
	return e, nil
}

// container.HeaderDeadReplays and container.HeaderDeadAt.
const (
	headerReplays = "longshore-dead-replays"
	headerDeadAt  = "longshore-dead-at"
)

// dedupOf is what makes two messages one for SQS, which drops the second within five
// minutes: their id. A message that died is not the one that lived, the next time it
// dies it is not the first dead one, and put back it is neither: dropped, each of them
// would be lost. The same dead letter twice is the lesser evil.
func dedupOf(m *longshore.Message) string {
	id := first(m.Headers.String(longshore.HeaderID), m.ID)
	if id == "" {
		return ""
	}
	if at := m.Headers.String(headerDeadAt); at != "" {
		return Hashed(id + "\x00" + at)
	}
	if n, ok := m.Headers.Int(headerReplays); ok && n > 0 {
		return Hashed(fmt.Sprintf("%s\x00%d", id, n))
	}
	return id
}

// address finds group and deduplication id. A key that is not a legal group id goes
// by its hash; a FIFO queue's message without a key is a group of its own.
func (e *Encoded) address(m *longshore.Message, fifo bool, env *envelope.Envelope) {
	switch {
	case m.Key == nil && fifo:
		e.Group, env.NoKey = "~"+NewID(), true
	case m.Key == nil:
	case legalID(string(m.Key)) && m.Key[0] != '~':
		e.Group = string(m.Key)
	default:
		e.Group = Hashed(string(m.Key))
		env.Key, env.HasKey = m.Key, true
	}
	if !fifo {
		return
	}
	switch id := dedupOf(m); {
	case id == "":
		e.dedup = NewID()
	case legalID(id):
		e.dedup = id
	default:
		e.dedup = Hashed(id)
	}
}

// legalID: up to 128 letters, digits and punctuation.
func legalID(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// Hashed is a group or deduplication id for a text that is not a legal one.
func Hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "~" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// NewID returns a UUID of version 7: by time, then random.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[6:]) // never fails
	ms := uint64(time.Now().UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func (e *Encoded) properties(m *longshore.Message, env *envelope.Envelope) {
	for name, v := range map[string]string{attributeType: m.ContentType, attributeEncoding: m.ContentEncoding} {
		if a, ok := stringAttribute("String", v); ok {
			e.attrs[name] = a
		} else {
			env.Set(name, v)
		}
	}
	env.Set("message-id", m.ID)
	env.Set("type", m.Type)
	env.Set("correlation-id", m.CorrelationID)
	env.Set("reply-to", m.ReplyTo)
	env.Set("app-id", m.AppID)
	env.Set("user-id", m.UserID)
	switch t := m.Timestamp; {
	case t.IsZero():
	case t.Year() < 1680 || t.Year() > 2260 || t.UnixNano() == 0:
		env.Set("timestamp", t.UTC().Format(time.RFC3339Nano))
	default:
		env.Time = t.UnixNano()
	}
	if m.Expiration > 0 {
		env.Set("expiration", m.Expiration.String())
	}
	if m.Priority > 0 {
		env.Set("priority", strconv.Itoa(int(m.Priority)))
	}
	if m.DeliveryMode > 0 {
		env.Set("delivery-mode", strconv.Itoa(int(m.DeliveryMode)))
	}
}

// candidate is a header that SQS could hold.
type candidate struct {
	index int                         // among the headers
	attr  types.MessageAttributeValue // the header as SQS would hold it
	rank  int                         // the lowest are put into attributes first
}

// headers puts as many headers into attributes as there is room for. If that does
// not show all of them in their order, the list of all goes into the envelope.
func (e *Encoded) headers(h longshore.Headers, env *envelope.Envelope, reserve int) {
	kinds := typesOf(h)
	if kinds != nil {
		h = h.Clone()
		h.Del(headerTypes)
	}
	fits := make([]bool, len(h))
	cands := candidates(h, kinds)
	shown := 0
	for i, x := range h {
		if x.Name == HeaderTrace && isTrace(h, i) {
			e.trace, _ = x.Value.(string)
			fits[i] = true
			shown++
		}
	}
	room := MaxAttributes - len(e.attrs) - reserve
	whole := shown+len(cands) == len(h) && inOrder(h)
	if !env.IsEmpty() || !whole || len(cands) > room {
		room-- // of the envelope
	}
	for _, c := range cands[:max(min(room, len(cands)), 0)] {
		e.attrs[h[c.index].Name] = c.attr
		fits[c.index] = true
	}
	if whole && len(cands) <= room {
		return
	}
	env.HasHeaders = true
	env.Set(propertyTypes, packedTypes(h, fits, kinds))
	for i, x := range h {
		env.Headers = append(env.Headers, envelope.Entry{Header: x, Native: fits[i]})
	}
}

// propertyTypes is where the types of packed headers are.
const propertyTypes = "sqs-types"

// packedTypes are the foreign types of headers that did not become attributes.
func packedTypes(h longshore.Headers, fits []bool, kinds map[string]string) string {
	left := map[string]string{}
	for i, x := range h {
		if kind := kinds[x.Name]; kind != "" && !fits[i] {
			left[x.Name] = kind
		}
	}
	if len(left) == 0 {
		return ""
	}
	text, err := json.Marshal(left)
	if err != nil {
		return ""
	}
	return string(text)
}

// candidates lists the headers that can be attributes, the most wanted first: the
// lock's, the trace, CloudEvents, then by name.
func candidates(h longshore.Headers, kinds map[string]string) []candidate {
	var out []candidate
	for i, x := range h {
		if !attributeName(x.Name) || x.Name == envelope.Header || x.Name == attributeType || x.Name == attributeEncoding ||
			x.Name == sizeAttribute || x.Name == HeaderTrace || times(h, x.Name) > 1 {
			continue
		}
		if a, ok := toAttribute(x.Value, kinds[x.Name]); ok {
			out = append(out, candidate{index: i, attr: a, rank: rank(x.Name)})
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return strings.Compare(h[a.index].Name, h[b.index].Name)
	})
	return out
}

func rank(name string) int {
	switch {
	case name == "x-message-mutex":
		return 0
	case name == "traceparent":
		return 1
	case name == "tracestate":
		return 2
	case name == "JavaType": // without it no listener of Spring Cloud AWS knows the class
		return 3
	case strings.HasPrefix(name, "ce_"):
		return 4
	}
	if name == longshore.HeaderID { // the envelope has it too; others want theirs
		return math.MaxInt
	}
	return math.MaxInt - 1
}

func times(h longshore.Headers, name string) int {
	n := 0
	for i := range h {
		if h[i].Name == name {
			n++
		}
	}
	return n
}

func isTrace(h longshore.Headers, i int) bool {
	v, ok := h[i].Value.(string)
	return ok && v != "" && len(v) <= 1024 && envelope.LegalText(v) && times(h, HeaderTrace) == 1
}

// inOrder reports whether the names rise, which is how attributes are read back.
func inOrder(h longshore.Headers) bool {
	for i := 1; i < len(h); i++ {
		if h[i-1].Name >= h[i].Name {
			return false
		}
	}
	return true
}

// Claim replaces the body by a pointer to where it is.
func (e *Encoded) Claim(at Pointer, bytes int) {
	e.Size -= len(e.Body)
	e.Body = at.encode()
	a, _ := stringAttribute("Number", strconv.Itoa(bytes))
	e.attrs[sizeAttribute] = a
	e.Size += len(e.Body) + sizeOf(sizeAttribute, &a)
}

// Entry is the message in a batch.
func (e *Encoded) Entry(id string) types.SendMessageBatchRequestEntry {
	out := types.SendMessageBatchRequestEntry{Id: aws.String(id), MessageBody: aws.String(e.Body), MessageAttributes: e.attrs}
	if e.Group != "" {
		out.MessageGroupId = aws.String(e.Group)
	}
	if e.dedup != "" {
		out.MessageDeduplicationId = aws.String(e.dedup)
	}
	if e.trace != "" {
		out.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{
			HeaderTrace: {DataType: aws.String("String"), StringValue: aws.String(e.trace)}}
	}
	return out
}

func refused(code longshore.Code, err error) error {
	return &longshore.Error{Code: code, Op: "publish to sqs", Err: err}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
