package fleet

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
)

// maxAnswer bounds an answer.
const maxAnswer = 8 << 20

// Request is a request to an instance.
type Request struct {
	Method, Path string // the path with its query
	Body         []byte
	Accept       string
	LastEventID  string
}

// Client asks one instance. Its errors are a *longshore.Error: of this package where the
// instance cannot be reached, and the instance's own where it refused.
type Client struct {
	target Target
	http   *http.Client
}

// NewClient returns a client that gives up an attempt to connect after timeout. It follows no
// redirect and uses no proxy: a token is for the address that was named.
func NewClient(t Target, timeout time.Duration) *Client {
	return &Client{target: t, http: &http.Client{
		Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: timeout}).DialContext,
			TLSHandshakeTimeout: timeout, IdleConnTimeout: 20 * time.Second, MaxIdleConnsPerHost: 4},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func unknown(instance string) error {
	return &longshore.Error{Code: longshore.CodeNotFound, Op: "ask instance " + strings.ToValidUTF8(instance, "?"), Err: errors.New("no such instance")}
}

// Send sends a request with the token of the instance and returns the response, whose body the
// caller closes.
func (c *Client) Send(ctx context.Context, q Request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, q.Method, c.target.Base+q.Path, bytes.NewReader(q.Body))
	if err != nil {
		return nil, c.unreachable(q.Method, err)
	}
	if len(q.Body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.Accept != "" {
		req.Header.Set("Accept", q.Accept)
	}
	if q.LastEventID != "" {
		req.Header.Set("Last-Event-ID", q.LastEventID)
	}
	// A token that cannot be read is as none: the instance says that one is needed.
	if token, err := c.target.Token.Get(ctx); err == nil && strings.TrimSpace(token) != "" {
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(q.Method, err)
	}
	return res, nil
}

// Call makes a request and decodes the answer into v; nil: the answer is dropped.
func (c *Client) Call(ctx context.Context, method, path string, body, v any) error {
	q := Request{Method: method, Path: path}
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		q.Body = raw
	}
	res, err := c.Send(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return c.unreachable(method, err)
	}
	if res.StatusCode >= http.StatusBadRequest {
		return c.refused(res.Status, raw)
	}
	if len(raw) > maxAnswer || res.StatusCode >= http.StatusMultipleChoices {
		return c.foreign(res.Status)
	}
	if v == nil {
		return nil
	}
	if json.Unmarshal(raw, v) != nil {
		return c.foreign(res.Status)
	}
	return nil
}

// Stream reads the events of an instance and calls take for each, until the stream ends or take
// fails, whose error it returns. lastID is the last event that the caller has; "": none.
func (c *Client) Stream(ctx context.Context, path, lastID string, take func(kind string, data []byte) error) error {
	res, err := c.Send(ctx, Request{Method: http.MethodGet, Path: path, Accept: "text/event-stream", LastEventID: lastID})
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	if res.StatusCode != http.StatusOK {
		raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		if err != nil {
			return c.unreachable(http.MethodGet, err)
		}
		return c.refused(res.Status, raw)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxAnswer)
	kind := ""
	for lines.Scan() {
		if k, ok := bytes.CutPrefix(lines.Bytes(), []byte("event: ")); ok {
			kind = string(k)
		}
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			if err := take(kind, data); err != nil {
				return err
			}
		}
	}
	return c.unreachable(http.MethodGet, cmp.Or(lines.Err(), errors.New("the stream ended")))
}

// refused is the error that the instance answered with.
func (c *Client) refused(status string, raw []byte) error {
	var e struct{ Code, Message, Help string }
	if json.Unmarshal(raw, &e) != nil || e.Code == "" {
		return c.foreign(status)
	}
	if longshore.Code(e.Code) == longshore.CodeAuth && c.target.Hint != "" {
		e.Help = c.target.Hint
	}
	return &longshore.Error{Code: longshore.Code(e.Code), Op: c.target.Name, Err: errors.New(e.Message), Hint: e.Help}
}

// foreign is about an answer that no admin API gives.
func (c *Client) foreign(status string) error {
	return &longshore.Error{Code: longshore.CodeUnreachable, Op: "ask " + c.target.Name, Err: fmt.Errorf("it answered %s, and not as an admin API does", status), Hint: "check " + cmp.Or(c.target.Named, "the address")}
}

// unreachable is about an instance that does not answer. The URL stays out of it.
func (c *Client) unreachable(method string, err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		hint := "is its process or its host overloaded or frozen?"
		if method != http.MethodGet {
			hint = "the request may still be carried out, and a drain continues: look at the container before you repeat it"
		}
		return &longshore.Error{Code: longshore.CodeTimeout, Op: "ask " + c.target.Name, Err: errors.New("no answer in time"), Hint: hint}
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) { // the address is in Op already
		err = call.Err
	}
	hint := "is the service running, with an admin server?"
	if c.target.Named != "" {
		hint += " check " + c.target.Named
	}
	return &longshore.Error{Code: longshore.CodeUnreachable, Op: "ask " + c.target.Name, Err: err, Hint: hint}
}
