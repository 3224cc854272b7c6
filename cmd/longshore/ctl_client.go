package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/fleet"
	"github.com/longshore-go/longshore/transport"
)

// dialFor is how long an attempt to connect to an instance may take.
const dialFor = 5 * time.Second

// instance is the target for a client.
func (t *target) instance() fleet.Target {
	to := fleet.Target{Name: t.addr, Base: t.base, Hint: t.tokenHint(), Named: t.named}
	if t.token != "" {
		to.Token = transport.Static(t.token)
	}
	return to
}

// call makes a request and decodes the answer into v.
func (c *ctl) call(ctx context.Context, t target, method, path string, body map[string]any, v any) error {
	client := fleet.NewClient(t.instance(), dialFor)
	defer client.Close()
	if body == nil {
		return explained(ctx, client.Call(ctx, method, path, nil, v))
	}
	return explained(ctx, client.Call(ctx, method, path, body, v))
}

// explained says what to do about an error in terms of this command: the API speaks to programs.
func explained(ctx context.Context, err error) error {
	var e *longshore.Error
	if !errors.As(err, &e) {
		return err
	}
	x := *e
	switch {
	case x.Code == longshore.CodeTimeout && ctx.Err() != nil:
		x.Err = errors.New("no response within --timeout")
	case x.Hint == "see GET /api/containers":
		x.Hint = "see longshore ctl status"
	case strings.HasPrefix(x.Hint, "see GET /"):
		x.Hint = "see longshore ctl --help; is the service of another version than this command?"
	}
	return &x
}

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

// number is 0 for what is not a number: an older instance may leave out a field that this command
// knows, which must not end the command.
func number(v any) float64 {
	n, _ := v.(float64)
	return n
}

func span(v any) string {
	return fmt.Sprintf("%.0f..%.0f", number(at(v, "min")), number(at(v, "max")))
}

// compact is the body of a request in one line, as it is sent, for --dry-run.
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
