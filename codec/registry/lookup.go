package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/longshore-go/longshore"
)

// The registry's own error codes: what is asked for does not exist. A 404 without one
// of them may come from something else at that address: see isRegistry.
const (
	noSubject = 40401
	noVersion = 40402
	noSchema  = 40403
)

// identity is what the registry is asked for: an id, or a GUID.
type identity struct {
	id   int
	guid string
}

func (c *Codec) schemaOf(ctx context.Context, x *identifier) (Schema, error) {
	now, of := time.Now(), identity{x.id, x.guid}
	if err := c.unknown.get(of, now); err != nil {
		return Schema{}, err
	}
	return c.ids.get(ctx, of, time.Time{}, func(ctx context.Context) (Schema, time.Time, error) {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
		op := "look up the schema with " + x.String()
		s, err := c.ask(ctx, of)
		switch {
		case err == nil:
			c.proved.Store(true)
			return s, time.Time{}, nil
		case ofTheID(err) && c.isRegistry(ctx, err):
			err = notThere(op, err)
			c.unknown.put(of, err, now, now.Add(c.cfg.Unknown))
			return Schema{}, time.Time{}, err
		}
		return Schema{}, time.Time{}, failure(op, err)
	})
}

// ask is one request.
func (c *Codec) ask(ctx context.Context, of identity) (Schema, error) {
	if of.guid == "" {
		s, err := c.client.SchemaByID(ctx, of.id)
		return schema(of.id, s), err
	}
	s, err := c.client.SchemaByGUID(ctx, of.guid)
	found := schema(s.ID, s.Schema)
	found.GUID = of.guid
	return found, err
}

// ofTheID says whether an answer may be about the id that was asked for: any 4xx that is
// not about who asks, how often or how slowly.
func ofTheID(err error) bool {
	var answer *sr.ResponseError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return answer.StatusCode >= 400 && answer.StatusCode < 500
}

// notThere is the error about the id.
func notThere(op string, err error) error {
	e := &longshore.Error{Code: longshore.CodeNotFound, Op: op, Err: err, Hint: "the producer uses another registry, or the schema was deleted for good"}
	var answer *sr.ResponseError
	if errors.As(err, &answer) { // what a proxy writes on an error page stays out
		e.Err = fmt.Errorf("the schema registry answers %d (error code %d)", answer.StatusCode, answer.ErrorCode)
	}
	return e
}

// latest is the last schema of a subject. An old one is better than none.
func (c *Codec) latest(ctx context.Context, subject string) (Schema, error) {
	now := time.Now()
	return c.subjects.get(ctx, subject, now, func(ctx context.Context) (Schema, time.Time, error) {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
		s, err := c.client.SchemaByVersion(ctx, subject, -1)
		return schema(s.ID, s.Schema), now.Add(c.cfg.Refresh), failure(fmt.Sprintf("look up the latest schema of %.100q", subject), err)
	})
}

func schema(id int, s sr.Schema) Schema {
	return Schema{ID: id, Kind: Kind(s.Type.String()), Text: s.Schema}
}

// failure distinguishes a fault of the message from one of the registry.
func failure(op string, err error) error {
	if err == nil {
		return nil
	}
	e := &longshore.Error{Code: longshore.CodeUnreachable, Op: op, Err: err, Hint: "check the schema registry and its URLs; messages wait until it answers"}
	var answer *sr.ResponseError
	switch {
	case !errors.As(err, &answer):
		if errors.Is(err, context.DeadlineExceeded) {
			e.Code = longshore.CodeTimeout
		}
		return longshore.Release(e, 0)
	case answer.StatusCode == http.StatusUnauthorized:
		e.Code, e.Hint = longshore.CodeAuth, "check User and Password of the schema registry; messages wait until it lets us in"
	case answer.StatusCode == http.StatusForbidden:
		e.Code, e.Hint = longshore.CodeForbidden, "give the user the right to read schemas; messages wait until it has"
	}
	// The text of a proxy's error page may hold anything; it is not shown.
	e.Err = fmt.Errorf("the schema registry answers %d (error code %d)", answer.StatusCode, answer.ErrorCode)
	switch answer.ErrorCode {
	case noSubject, noVersion, noSchema:
		e.Code, e.Hint = longshore.CodeNotFound, "the producer uses another registry, or the schema was deleted for good"
		return e
	}
	return longshore.Release(e, 0)
}
