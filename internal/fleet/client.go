package fleet

import (
	"bytes"
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

// newClient returns a client that follows no redirect: a token is for the address that was
// named.
func newClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: timeout}).DialContext,
			TLSHandshakeTimeout: timeout, IdleConnTimeout: 20 * time.Second, MaxIdleConnsPerHost: 4},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func unknown(instance string) error {
	return &longshore.Error{Code: longshore.CodeNotFound, Op: "ask instance " + strings.ToValidUTF8(instance, "?"), Err: errors.New("there is no such instance")}
}

func (r *reader) send(ctx context.Context, q Request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, q.Method, r.target.Base+q.Path, bytes.NewReader(q.Body))
	if err != nil {
		return nil, r.unreachable(err)
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
	if token, err := r.target.Token.Get(ctx); err == nil && strings.TrimSpace(token) != "" {
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, r.unreachable(err)
	}
	return res, nil
}

func (r *reader) call(ctx context.Context, method, path string, body, v any) error {
	q := Request{Method: method, Path: path}
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		q.Body = raw
	}
	res, err := r.send(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return r.unreachable(err)
	}
	if res.StatusCode >= http.StatusBadRequest {
		return r.refused(res.Status, raw)
	}
	if len(raw) > maxAnswer || res.StatusCode >= http.StatusMultipleChoices {
		return r.foreign(res.Status)
	}
	if v == nil {
		return nil
	}
	if json.Unmarshal(raw, v) != nil {
		return r.foreign(res.Status)
	}
	return nil
}

// refused is the error that the instance answered with.
func (r *reader) refused(status string, raw []byte) error {
	var e struct{ Code, Message, Help string }
	if json.Unmarshal(raw, &e) != nil || e.Code == "" {
		return r.foreign(status)
	}
	if longshore.Code(e.Code) == longshore.CodeAuth && r.target.Hint != "" {
		e.Help = r.target.Hint
	}
	return &longshore.Error{Code: longshore.Code(e.Code), Op: r.target.Name, Err: errors.New(e.Message), Hint: e.Help}
}

// foreign is about an answer that no admin API gives.
func (r *reader) foreign(status string) error {
	return &longshore.Error{Code: longshore.CodeUnreachable, Op: "ask " + r.target.Name, Err: fmt.Errorf("it answered %s, and not as an admin API does", status), Hint: "check the address"}
}

// unreachable is about an instance that does not answer. The URL stays out of it.
func (r *reader) unreachable(err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return &longshore.Error{Code: longshore.CodeTimeout, Op: "ask " + r.target.Name, Err: errors.New("no answer in time"), Hint: "is its process or its host overloaded or frozen?"}
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) { // the address is in Op already
		err = call.Err
	}
	return &longshore.Error{Code: longshore.CodeUnreachable, Op: "ask " + r.target.Name, Err: err, Hint: "is the service running, with an admin server?"}
}
