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
	"os"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/internal/cli"
)

// target is an instance.
type target struct {
	addr, base string
	token      string
}

// targets are the instances to talk to, each with its token.
func (c *ctl) targets() ([]target, error) {
	addrs := c.admin
	if addrs == "" {
		addrs = c.env("LONGSHORE_ADMIN")
	}
	if addrs == "" {
		addrs = admin.DefaultAddr
	}
	token, err := c.givenToken()
	if err != nil {
		return nil, err
	}
	var ts []target
	for _, addr := range strings.Split(addrs, ",") {
		t := target{addr: strings.TrimSpace(addr), token: token}
		t.base = t.addr
		if !strings.Contains(t.base, "://") {
			t.base = "http://" + t.base
		}
		u, err := url.Parse(t.base)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			return nil, &cli.UsageError{Text: "one of the admin addresses is not an address", Hint: "write host:port or https://host:port, separated by commas"}
		}
		t.base = strings.TrimSuffix(u.Scheme+"://"+u.Host+u.Path, "/")
		if t.token == "" && here(u.Hostname()) {
			t.token = ownToken(u.Host)
		}
		ts = append(ts, t)
	}
	return ts, nil
}

func (c *ctl) env(name string) string {
	if c.streams.Env == nil {
		return ""
	}
	v, _ := c.streams.Env(name)
	return v
}

// givenToken is the token that the user gave.
func (c *ctl) givenToken() (string, error) {
	if c.tokenFile != "" {
		raw, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return "", &cli.UsageError{Text: "the token file cannot be read: " + err.Error(), Hint: "check --token-file"}
		}
		return strings.TrimSpace(string(raw)), nil
	}
	return c.env("LONGSHORE_TOKEN"), nil
}

func here(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// ownToken reads the token that an instance on this host made; "" if there is none.
func ownToken(addr string) string {
	raw, err := os.ReadFile(admin.TokenFile(addr))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

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
		return nil, &longshore.Error{Code: longshore.CodeUnreachable, Op: "ask " + t.addr, Err: fmt.Errorf("it answered %s, and not as an admin API does", res.Status), Hint: "check --admin"}
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
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &longshore.Error{Code: longshore.CodeUnreachable, Op: "ask the admin API at " + t.addr, Err: err, Hint: "is the service running, with an admin server? check --admin or LONGSHORE_ADMIN"}
}

// refusedBy is the error that the API answered with.
func refusedBy(t target, answer map[string]any) error {
	text := func(name string) string {
		s, _ := answer[name].(string)
		return s
	}
	e := &longshore.Error{Code: longshore.Code(text("code")), Op: t.addr, Err: errors.New(text("message")), Hint: text("help")}
	if e.Hint == "see GET /api/containers" { // the API speaks to programs
		e.Hint = "see longshore ctl status"
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
