package mutex

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Tables is the names of tables and columns. Each zero field is the default, so
// an existing mutex table needs only its own names:
//
//	mutex.Tables{Mutex: "RABBITMQ_MUTEX", ID: "MUTEX", CreatedAt: "-"}
//
// A name may have a schema before it ("shop.longshore_mutex").
type Tables struct {
	// Mutex is the table of rows that consumers take. Zero: longshore_mutex.
	Mutex string
	// ID and CreatedAt are its columns. Zero: id, created_at. CreatedAt "-": the
	// table has no such column.
	ID, CreatedAt string
	// Outbox holds unpublished messages. Zero: longshore_outbox.
	Outbox string
	// Shards has one row for each part of the outbox that one relay works on.
	// Zero: longshore_relay.
	Shards string
	// Inbox remembers what was done, for [Inbox]. Zero: longshore_inbox.
	Inbox string
	// Sequence makes numeric ids for mutex rows; see [SequenceID]. Zero: [DDL] creates none.
	Sequence string
	// Quote puts the dialect's quotes around every name. Without them PostgreSQL
	// folds names to lower case.
	Quote bool
}

func (t Tables) defaults() Tables {
	or := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	or(&t.Mutex, "longshore_mutex")
	or(&t.ID, "id")
	or(&t.CreatedAt, "created_at")
	or(&t.Outbox, "longshore_outbox")
	or(&t.Shards, "longshore_relay")
	or(&t.Inbox, "longshore_inbox")
	return t
}

// plainName is what a name may be made of, with the schema before it.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$#]*(\.[A-Za-z_][A-Za-z0-9_$#]*)*$`)

// check refuses names that are not plain: they go into statements as they are.
func (t Tables) check() error {
	var errs []error
	for _, n := range []struct{ field, name string }{{"Mutex", t.Mutex}, {"ID", t.ID}, {"CreatedAt", t.CreatedAt},
		{"Outbox", t.Outbox}, {"Shards", t.Shards}, {"Inbox", t.Inbox}, {"Sequence", t.Sequence}} {
		if n.field == "CreatedAt" && n.name == "-" || n.field == "Sequence" && n.name == "" {
			continue
		}
		if !plainName.MatchString(n.name) || len(n.name) > 128 {
			errs = append(errs, fmt.Errorf("%s: %q is not a name of letters, digits and _ $ #", "Tables."+n.field, n.name))
		}
	}
	return errors.Join(errs...)
}

// in returns the names as the dialect's statements need them.
func (t Tables) in(d Dialect) Tables {
	t = t.defaults()
	if !t.Quote {
		return t
	}
	for _, n := range []*string{&t.Mutex, &t.ID, &t.CreatedAt, &t.Outbox, &t.Shards, &t.Inbox, &t.Sequence} {
		if *n == "-" || *n == "" {
			continue
		}
		parts := strings.Split(*n, ".")
		for i := range parts {
			parts[i] = d.quote(parts[i])
		}
		*n = strings.Join(parts, ".")
	}
	return t
}

// index makes the name of an index from that of its table.
func (t Tables) index(d Dialect, table, suffix string) string {
	base := table[strings.LastIndexByte(table, '.')+1:]
	name := strings.Trim(base, "`\"") + "_" + suffix
	if t.Quote {
		return d.quote(name)
	}
	return name
}
