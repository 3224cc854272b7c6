package bridge

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/longshore-go/longshore/bridge/internal/ledger"
)

// Effects is what an inbox says of the messages of a ledger.
type Effects struct {
	Confirmed int      // messages that targets confirmed
	Handled   int      // of these, messages that the inbox has: their effects were applied, once
	Unhandled []string // identities of those that it has not
}

// VerifyEffects compares a ledger with the identities that an inbox has, in any order: that is
// evidence of effects, also where the target is a queue that cannot be read again.
func VerifyEffects(ctx context.Context, dir string, handled iter.Seq2[string, error]) (*Effects, error) {
	open := map[string]string{} // by the identity as an inbox has it
	v := &Verification{}
	for r, err := range v.records(ctx, dir, func(*ledger.Record) {}) {
		if err != nil {
			return nil, err
		}
		switch {
		case r.ID == "":
		case r.Kind == ledger.Confirmed:
			open[inboxID(r.ID)] = r.ID
		case r.Kind == ledger.Returned:
			delete(open, inboxID(r.ID))
		}
	}
	e := &Effects{Confirmed: len(open)}
	for id, err := range handled {
		if err != nil {
			return nil, fmt.Errorf("read the inbox: %w", err)
		}
		if _, ok := open[id]; ok {
			e.Handled++
			delete(open, id)
		}
	}
	e.Unhandled = slices.Sorted(maps.Values(open))
	return e, nil
}

// InboxIDs reads identities with a query whose only column they are, as
//
//	SELECT id FROM message_inbox WHERE consumer = $1
func InboxIDs(ctx context.Context, db *sql.DB, query string, args ...any) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		rows, err := db.QueryContext(ctx, query, args...)
		if err != nil {
			yield("", err)
			return
		}
		defer func() { _ = rows.Close() }() // read to its end, or the query is given up
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); !yield(id, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield("", err)
		}
	}
}

// maxInboxID is the width of the inbox's column, see middleware/mutex.
const maxInboxID = 128

// inboxID is an identity as the inbox has it: a long one is replaced by its hash.
func inboxID(id string) string {
	if len(id) <= maxInboxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}
