package sqstest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
)

const noPortHost = "sqs.localhost"

// errAborted is what a caller sees of an answer that was lost.
var errAborted = errors.New("sqstest: connection cut")

// Config returns the configuration of a broker on this server:
//
//	broker := sqs.New(sqstest.New(t).Config())
func (s *Server) Config() sqs.Config {
	cfg := sqs.Config{Region: s.cfg.Region, Endpoint: s.URL, Credentials: sqs.Keys("test", transport.Static("test"), transport.Secret{})}
	if s.cfg.NoPort {
		cfg.HTTPClient = s.HTTPClient()
	}
	return cfg
}

// HTTPClient is an HTTP client whose requests reach this server without a
// connection, whatever their URL: for the field HTTPClient of an SDK's options.
func (s *Server) HTTPClient() *Client { return &Client{server: s} }

// Client calls a server in this process.
type Client struct{ server *Server }

// Do serves one request. A request whose context has ended before the server
// took it has no effect; afterwards it has, and the answer comes anyway.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	in.Host = r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	c.server.ServeHTTP(w, in)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if w.aborted {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// recorder takes an answer.
type recorder struct {
	header  http.Header
	body    bytes.Buffer
	status  int
	aborted bool
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

// abort drops the answer, as a connection that is cut does.
func abort(w http.ResponseWriter) {
	if r, ok := w.(*recorder); ok {
		r.aborted = true
		return
	}
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// nameOf finds the queue of a queue URL: its last part.
func nameOf(queueURL string) string { return queueURL[strings.LastIndexByte(queueURL, '/')+1:] }

func nameOfARN(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }
