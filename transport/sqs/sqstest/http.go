package sqstest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const (
	contentType = "application/x-amz-json-1.0"
	maxRequest  = 8 << 20 // base64 and escapes of a full batch
)

// call is one request on its way through the server.
type call struct {
	Call
	ctx    context.Context //nolint:containedctx // lives as long as the request
	base   string          // of queue URLs: http://host
	faults []*Fault        // that match, once the queue is known
	id     int             // in the log
}

func (s *Server) newCall(r *http.Request, action string) *call {
	c, ok := s.calls.Get().(*call)
	if !ok {
		c = new(call)
	}
	*c = call{Call: Call{Action: action, Entries: c.Entries[:0]}, ctx: r.Context(), base: "http://" + r.Host, id: -1}
	return c
}

// endCall keeps what nobody has: a call in the log is the log's.
func (s *Server) endCall(c *call) {
	if s.log.limit < 0 {
		s.calls.Put(c)
	}
}

// ServeHTTP answers one call of the AWS JSON protocol 1.0, on any path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		abort(w)
		return
	}
	defer s.wg.Done()
	buf := s.buffer()
	defer s.buffers.Put(buf)
	if n := r.ContentLength; n > 0 && n <= maxRequest {
		buf.Grow(int(n) + bytes.MinRead)
	}
	// To its end: only then does net/http end the context when the client goes.
	if _, err := buf.ReadFrom(io.LimitReader(r.Body, maxRequest)); err != nil {
		abort(w)
		return
	}
	out, err := s.serve(r, buf.Bytes())
	var refused *apiError
	switch {
	case err == nil:
		s.answer(w, http.StatusOK, out)
	case errors.As(err, &refused):
		fault := "Sender"
		if refused.server {
			fault = "Receiver"
		}
		w.Header().Set("x-amzn-query-error", refused.code+";"+fault)
		s.answer(w, refused.status, map[string]string{"__type": "com.amazonaws.sqs#" + refused.shape, "message": refused.message})
	default:
		abort(w)
	}
}

// buffer is an empty buffer for a request or an answer.
func (s *Server) buffer() *bytes.Buffer {
	buf, ok := s.buffers.Get().(*bytes.Buffer)
	if !ok {
		buf = new(bytes.Buffer)
	}
	buf.Reset()
	return buf
}

func (s *Server) answer(w http.ResponseWriter, status int, out any) {
	buf := s.buffer()
	defer s.buffers.Put(buf)
	if o, ok := out.(written); ok {
		_, _ = buf.Write(o.append(buf.AvailableBuffer()))
	} else if err := json.NewEncoder(buf).Encode(out); err != nil {
		abort(w)
		return
	}
	h := w.Header()
	h["Content-Type"] = []string{contentType}
	h["X-Amzn-Requestid"] = []string{newID()}
	h["Content-Length"] = []string{strconv.Itoa(buf.Len())}
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes())
}

func (s *Server) serve(r *http.Request, body []byte) (any, error) {
	if r.Method != http.MethodPost {
		return nil, refuse("InvalidAction", "SQS is called by POST, this is %s.", r.Method)
	}
	name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	do := actionOf(name)
	if !ok || do == nil {
		return nil, refuse("InvalidAction", "The action %q is not valid for this endpoint; the protocol is AWS JSON 1.0.", r.Header.Get("X-Amz-Target"))
	}
	if err := s.authorize(r.Header.Get("Authorization")); err != nil {
		return nil, err
	}
	c := s.newCall(r, name)
	defer s.endCall(c)
	out, err := do(s, c, body)
	s.finish(c, err)
	if err != nil {
		return nil, err
	}
	return out, s.after(c)
}

// authorize looks at the access key only: signatures are not checked.
func (s *Server) authorize(header string) error {
	keys := s.keys.Load()
	if keys == nil {
		return nil
	}
	_, rest, _ := strings.Cut(header, "Credential=")
	key, _, _ := strings.Cut(rest, "/")
	switch {
	case header == "":
		return refuse("MissingAuthenticationToken", "Request is missing Authentication Token")
	case !(*keys)[key]:
		return refuse("InvalidClientTokenId", "The security token included in the request is invalid.")
	}
	return nil
}

type input interface{ queue() string }

// decoded makes a function that reads a request, meets the faults that are set
// for it, and runs.
func decoded[T any, P interface {
	*T
	input
}](run func(s *Server, c *call, in P) (any, error)) func(*Server, *call, []byte) (any, error) {
	return func(s *Server, c *call, body []byte) (any, error) {
		in := P(new(T))
		quick, can := any(in).(scanned)
		if can && !scan(quick, body) {
			in, can = P(new(T)), false
		}
		if !can && len(body) > 0 {
			if err := json.Unmarshal(body, in); err != nil {
				return nil, refuse("SerializationException", "%s", fmt.Sprintf("the request is not JSON of %s: %v", c.Action, err))
			}
		}
		c.Queue = in.queue()
		if err := s.before(c); err != nil {
			return nil, err
		}
		return run(s, c, in)
	}
}

// actionOf returns the action of a name, nil if there is none.
func actionOf(name string) func(*Server, *call, []byte) (any, error) {
	switch name {
	case "SendMessage":
		return decoded((*Server).sendMessage)
	case "SendMessageBatch":
		return decoded((*Server).sendBatch)
	case "ReceiveMessage":
		return decoded((*Server).receiveMessage)
	case "DeleteMessage":
		return decoded((*Server).deleteMessage)
	case "DeleteMessageBatch":
		return decoded((*Server).deleteBatch)
	case "ChangeMessageVisibility":
		return decoded((*Server).changeVisibility)
	case "ChangeMessageVisibilityBatch":
		return decoded((*Server).changeVisibilityBatch)
	case "CreateQueue":
		return decoded((*Server).createQueue)
	case "GetQueueUrl":
		return decoded((*Server).getQueueURL)
	case "ListQueues":
		return decoded((*Server).listQueues)
	case "DeleteQueue":
		return decoded((*Server).deleteQueue)
	case "PurgeQueue":
		return decoded((*Server).purgeQueue)
	case "GetQueueAttributes":
		return decoded((*Server).getAttributes)
	case "SetQueueAttributes":
		return decoded((*Server).setAttributes)
	case "ListDeadLetterSourceQueues":
		return decoded((*Server).listSources)
	case "TagQueue":
		return decoded((*Server).tagQueue)
	case "UntagQueue":
		return decoded((*Server).untagQueue)
	case "ListQueueTags":
		return decoded((*Server).listTags)
	case "StartMessageMoveTask":
		return decoded((*Server).startMove)
	case "ListMessageMoveTasks":
		return decoded((*Server).listMoves)
	case "CancelMessageMoveTask":
		return decoded((*Server).cancelMove)
	}
	return nil
}
