package mutex

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/longshore-go/longshore"
)

// newID is a UUID of version 7: it begins with the time, which keeps an index small.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16|uint64(b[6])<<8|uint64(b[7]))
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[:8], b[:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:], b[10:])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// NumericID makes ids of at most 18 digits, for an existing numeric column: 59 random
// bits, so that no number comes back while an old copy waits in a dead-letter queue.
// For [OutboxConfig.NewID].
func NumericID(context.Context, Execer) (string, error) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return strconv.FormatUint(binary.BigEndian.Uint64(b[:])>>5, 10), nil
}

// SequenceID makes ids by a sequence of the database, in the caller's transaction, at the
// price of one round trip. For [OutboxConfig.NewID]. The sequence must not cycle: a number
// that comes back locks or finishes another message. [Tables.Sequence] makes [DDL] create
// one. SQLite and MySQL have no sequences (MariaDB has).
//
// Error: [longshore.CodeConfig], for a name that is none and for SQLite.
func SequenceID(d Dialect, name string) (func(ctx context.Context, tx Execer) (string, error), error) {
	query := d.nextValue(name)
	if !plainName.MatchString(name) || query == "" {
		return nil, configError("mutex.SequenceID", fmt.Errorf("sequence %q of %s: not a name of letters, digits and _ $ #, or a dialect without sequences", name, d))
	}
	return func(ctx context.Context, tx Execer) (id string, err error) {
		switch q := tx.(type) {
		case interface {
			QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
		}:
			err = q.QueryRowContext(ctx, query).Scan(&id)
		case interface {
			QueryValue(ctx context.Context, query string) (string, error)
		}:
			id, err = q.QueryValue(ctx, query)
		default:
			err = fmt.Errorf("a %T cannot query", tx)
		}
		if err != nil {
			return "", fmt.Errorf("longshore: next value of sequence %s: %w", name, err)
		}
		return id, nil
	}, nil
}

// nextValue is the query for the next value of a sequence; empty where there are none.
func (d Dialect) nextValue(name string) string {
	switch d {
	case Postgres:
		return "SELECT CAST(nextval('" + name + "') AS text)"
	case MySQL:
		return "SELECT NEXTVAL(" + name + ")"
	case SQLite:
	}
	return ""
}

// newID is the configured id, which goes into a column of 64 characters and a header.
func (o *Outbox) newID(ctx context.Context, tx Execer) (string, error) {
	id, err := o.cfg.NewID(ctx, tx)
	if err == nil && (id == "" || len(id) > maxRowID) {
		err = &longshore.Error{Code: longshore.CodeConfig, Op: "OutboxConfig.NewID", Err: fmt.Errorf("%.70q is not 1 to %d characters", id, maxRowID), Hint: "see mutex.NumericID"}
	}
	return id, err
}

// maxRowID is the width of the columns for ids of mutex rows.
const maxRowID = 64
