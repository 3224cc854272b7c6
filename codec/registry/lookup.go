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
// of them comes from something else at that address.
const (
	noSubject = 40401
	noVersion = 40402
	noSchema  = 40403
)

func (c *Codec) byID(ctx context.Context, id int) (Schema, error) {
	return c.ids.get(ctx, id, time.Time{}, func(ctx context.Context) (Schema, time.Time, error) {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
		s, err := c.client.SchemaByID(ctx, id)
		return schema(id, s), time.Time{}, failure(fmt.Sprintf("look up schema id %d", id), err)
	})
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

// failure tells what is the message's fault from what is the registry's.
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
	// What a proxy writes on an error page is nobody's business here.
	e.Err = fmt.Errorf("the schema registry answers %d (error code %d)", answer.StatusCode, answer.ErrorCode)
	switch answer.ErrorCode {
	case noSubject, noVersion, noSchema:
		e.Code, e.Hint = longshore.CodeNotFound, "the producer uses another registry, or the schema was deleted for good"
		return e
	}
	return longshore.Release(e, 0)
}
