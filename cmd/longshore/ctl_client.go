package main

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
	"strings"
	"time"

	"github.com/longshore-go/longshore"
)

const maxAnswer = 8 << 20

// call makes a request and reads the answer, or the error in it.
func (c *ctl) call(ctx context.Context, t target, method, path string, body map[string]any) (map[string]any, error) {
	res, err := c.send(ctx, t, method, path, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, unreachable(t, err)
	}
	var answer map[string]any
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, &longshore.Error{Code: longshore.CodeUnreachable, Op: "ask " + t.addr, Err: fmt.Errorf("the response (%s) is not that of an admin API", res.Status), Hint: "check " + t.named}
	}
	if res.StatusCode >= 400 {
		return nil, refusedBy(t, answer)
	}
	return answer, nil
}

func (c *ctl) send(ctx context.Context, t target, method, path string, body map[string]any) (*http.Response, error) {
	var in io.Reader = http.NoBody
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, t.base+path, in)
	if err != nil {
		return nil, unreachable(t, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if t.token != "" {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext},
		// A token is for the address that was named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return nil, unreachable(t, err)
	}
	return res, nil
}

func unreachable(t target, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &longshore.Error{Code: longshore.CodeTimeout, Op: "ask the admin API at " + t.addr, Err: errors.New("no response within --timeout"),
			Hint: "the request may still be carried out, and a drain continues: see longshore ctl status"}
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &longshore.Error{Code: longshore.CodeUnreachable, Op: "ask the admin API at " + t.addr, Err: err, Hint: "is the service running, with an admin server? check " + t.named}
}

// refusedBy is the error that the API answered with.
func refusedBy(t target, answer map[string]any) error {
	text := func(name string) string {
		s, _ := answer[name].(string)
		return s
	}
	e := &longshore.Error{Code: longshore.Code(text("code")), Op: t.addr, Err: errors.New(text("message")), Hint: text("help")}
	switch { // the API speaks to programs
	case e.Code == longshore.CodeAuth:
		e.Hint = t.tokenHint()
	case e.Hint == "see GET /api/containers":
		e.Hint = "see longshore ctl status"
	case strings.HasPrefix(e.Hint, "see GET /"):
		e.Hint = "see longshore ctl --help; is the service of another version than this command?"
	}
	return e
}

func escape(name string) string { return url.PathEscape(name) }

// at follows names into an answer; nil if there is nothing.
func at(v any, path ...string) any {
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

func number(v any) float64 {
	n, _ := v.(float64)
	return n
}

func span(v any) string {
	return fmt.Sprintf("%.0f..%.0f", number(at(v, "min")), number(at(v, "max")))
}

func compact(v map[string]any) string {
	if v == nil {
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw)
}
