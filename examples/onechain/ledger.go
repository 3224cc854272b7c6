package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// cases are the outcomes, in the order of the table.
func cases() []string {
	return []string{"works", "packed", "fails twice", "always fails", "comes back later", "released", "rejected", "no such account",
		"discarded", "panics once", "not JSON", "sent twice"}
}

// messages are one for each case, and one more for what is sent twice. Each broker
// gets its own, by their ids: all of them share one inbox.
func messages(broker string) ([]*longshore.Message, error) {
	var out []*longshore.Message
	for i, name := range cases() {
		m := &longshore.Message{ID: broker + "-order-" + fmt.Sprint(i), Key: []byte("account-" + fmt.Sprint(i)), Body: []byte(`{"case":"` + name + `"}`), ContentType: "application/json"}
		m.Headers.Set("case", name)
		m.Headers.Set(longshore.HeaderID, m.ID)
		switch name {
		case "packed":
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			if _, err := z.Write(m.Body); err != nil {
				return nil, err
			}
			if err := z.Close(); err != nil {
				return nil, err
			}
			m.Body, m.ContentEncoding = b.Bytes(), "gzip"
		case "not JSON":
			m.Body = []byte("{")
		case "sent twice":
			out = append(out, m)
		}
		out = append(out, m)
	}
	return out, nil
}

// row is what became of one case on one broker.
type row struct {
	attempts []int  // of each call of the handler
	effects  int    // rows that it has written
	dead     string // reason in the dead-letter destination
}

func (r row) String() string {
	s := fmt.Sprintf("attempts %v, effects %d", r.attempts, r.effects)
	if r.dead != "" {
		s += ", dead: " + r.dead
	}
	return s
}

// ledger collects the rows of one broker.
type ledger struct {
	broker string
	mu     sync.Mutex
	rows   map[string]*row
}

func newLedger(broker string) *ledger {
	l := &ledger{broker: broker, rows: map[string]*row{}}
	for _, name := range cases() {
		l.rows[name] = &row{}
	}
	return l
}

// Handle is the handler: it counts, plays the case, and writes its effect in the
// transaction that the inbox made.
func (l *ledger) Handle(ctx context.Context, d *longshore.Delivery) error {
	l.mu.Lock()
	r := l.rows[d.Headers.String("case")]
	if r == nil {
		l.mu.Unlock()
		return longshore.Discard(fmt.Errorf("unknown case: %.40q", d.Headers.String("case")))
	}
	r.attempts = append(r.attempts, d.Attempt)
	n := len(r.attempts)
	l.mu.Unlock()
	o, err := decode(d)
	if err != nil {
		return err
	}
	if err := play(o.Case, n); err != nil {
		return err
	}
	tx, err := mutex.TxFrom(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO effects (broker, name) VALUES (?, ?)", l.broker, o.Case)
	return err
}

// takeDead is the handler of the dead-letter destination.
func (l *ledger) takeDead(_ context.Context, d *longshore.Delivery) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.rows[d.Headers.String("case")]; r != nil {
		r.dead += d.Headers.String(container.HeaderDeadReason)
	}
	return nil
}

// read takes the effects in: once all is done.
func (l *ledger) read(ctx context.Context, db *sql.DB) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, r := range l.rows {
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM effects WHERE broker = ? AND name = ?", l.broker, name).Scan(&r.effects); err != nil {
			return err
		}
	}
	return nil
}

// compare prints the table and fails where a broker differs from the first.
func compare(out io.Writer, ls []*ledger) error {
	var differ []string
	for _, name := range cases() {
		want := ls[0].rows[name].String()
		fmt.Fprintf(out, "%-17s %s\n", name, want)
		for _, l := range ls[1:] {
			if got := l.rows[name].String(); got != want {
				differ = append(differ, fmt.Sprintf("%s on %s: %s; on %s: %s", name, l.broker, got, ls[0].broker, want))
			}
		}
	}
	if len(differ) > 0 {
		return errors.New("not the same everywhere:\n" + strings.Join(differ, "\n"))
	}
	fmt.Fprintf(out, "the same on %d brokers\n", len(ls))
	return nil
}
