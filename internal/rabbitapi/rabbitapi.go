package rabbitapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/longshore-go/longshore"
)

// Client asks one management API.
type Client struct {
	// Base is the address, without the path /api. A user in it is not used.
	Base *url.URL
	// User and Password are the login.
	User, Password string
	// HTTP makes the calls.
	HTTP *http.Client
	// Hint says in errors what to do about the address.
	Hint string
}

// Get decodes what is at the path below /api, each element as it is. It is false where
// there is no such thing.
func (c *Client) Get(ctx context.Context, into any, path ...string) (bool, error) {
	return c.Find(ctx, into, nil, path...)
}

// Find is Get with a query.
func (c *Client) Find(ctx context.Context, into any, query url.Values, path ...string) (bool, error) {
	u := *c.Base
	u.User = nil
	u.RawQuery = query.Encode()
	escaped := make([]string, len(path))
	for i, p := range path {
		escaped[i] = url.PathEscape(p)
	}
	u.Path, u.RawPath = "/api/"+strings.Join(path, "/"), "/api/"+strings.Join(escaped, "/")
	bad := func(code longshore.Code, err error) error {
		return &longshore.Error{Code: code, Op: "ask RabbitMQ's management API at " + u.Host, Err: err, Hint: c.Hint}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return false, bad(longshore.CodeBadAddress, errors.New("its address cannot be read"))
	}
	req.SetBasicAuth(c.User, c.Password)
	resp, err := c.HTTP.Do(req) //nolint:gosec // the operator names the address
	if err != nil {
		return false, bad(longshore.CodeUnreachable, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return false, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return false, bad(longshore.CodeForbidden, errors.New(resp.Status))
	default:
		return false, bad(longshore.CodeUnreachable, errors.New(resp.Status))
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return false, bad(longshore.CodeUndecodable, err)
	}
	return true, nil
}
