package soak

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"go.uber.org/zap"
	_ "modernc.org/sqlite" // the driver

	"github.com/longshore-go/longshore/middleware/mutex"
)

// envPlan is where a child finds what it has to do.
const envPlan = "MUTEX_SOAK_PLAN"

// plan is what parent and children know in common.
type plan struct {
	Role     role
	Broker   string // rabbitmq, kafka or sqs
	Addr     string // of the broker, for producers and for who judges
	Proxy    string // of the same, for consumers: it may be cut
	Queue    string
	Driver   string // pgx or sqlite
	DSN      string
	Prefix   string // of the tables
	Ledger   string // a file: one line for each delivery and each run of the handler
	Lease    time.Duration
	Messages int
	Poison   int  // every n-th message fails until the crew is healthy
	Healthy  bool // handlers do not fail
	Naked    bool // no mutex: the control
}

type role string

const (
	producer role = "producer"
	consumer role = "consumer"
)

func (p *plan) dead() string { return p.Queue + "-dead" }

func (p *plan) tables() mutex.Tables {
	return mutex.Tables{Mutex: p.Prefix + "mutex", Outbox: p.Prefix + "outbox", Shards: p.Prefix + "relay", Inbox: p.Prefix + "inbox"}
}

func (p *plan) orders() string  { return p.Prefix + "orders" }
func (p *plan) effects() string { return p.Prefix + "effects" }

func (p *plan) open(conns int) (*sql.DB, error) {
	db, err := sql.Open(p.Driver, p.DSN)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

func (p *plan) store(db *sql.DB) mutex.Store { return mutex.SQL(db, p.dialect()) }

func (p *plan) dialect() mutex.Dialect {
	if p.Driver == "pgx" {
		return mutex.Postgres
	}
	return mutex.SQLite
}

// bind writes $1 as SQLite has it, too: it takes ?1.
func (p *plan) bind(query string) string {
	if p.Driver == "pgx" {
		return query
	}
	return strings.ReplaceAll(query, "$", "?")
}

func (p *plan) mutex(db *sql.DB) (*mutex.Mutex, error) {
	return mutex.New(p.store(db), mutex.Config{Tables: p.tables(), HasOutbox: true, BusyDelay: busyDelay, Logger: zap.NewNop()})
}

// poisoned messages fail until somebody mends their handler.
func (p *plan) poisoned(id string) bool {
	var n int
	_, err := fmt.Sscanf(id, "m-%d", &n)
	return err == nil && n%p.Poison == 0
}

func (p *plan) environment() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers
	}
	return envPlan + "=" + string(b)
}

// planOfChild is nil in the parent.
func planOfChild() (*plan, error) {
	text := os.Getenv(envPlan)
	if text == "" {
		return nil, nil //nolint:nilnil // the parent has none
	}
	p := &plan{}
	return p, json.Unmarshal([]byte(text), p)
}
