package soak

import (
	"bufio"
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// site is the broker and the database of one soak.
type site struct {
	t     testing.TB
	plan  plan
	db    *sql.DB
	proxy *faultproxy.Proxy // nil: nothing can be cut

	kafka   *kfake.Cluster  // nil on any other
	members map[string]bool // of its group, all that were seen
}

// embedded needs nothing: brokers in this process and SQLite.
func embedded(t testing.TB, broker string, messages, poison int) *site {
	t.Helper()
	s := &site{t: t, plan: plan{Broker: broker, Messages: messages, Poison: poison, Lease: shortLease, Queue: "orders", Driver: "sqlite",
		DSN: "file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate"}}
	switch broker {
	case "rabbitmq":
		s.through(amqptest.New(t).URL)
	case "kafka":
		k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "100"}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Close)
		s.kafka, s.members = k, map[string]bool{}
		s.direct(strings.Join(k.ListenAddrs(), ","))
	case "sqs":
		s.through(sqstest.New(t).URL)
	}
	s.prepare()
	return s
}

// real is on brokers that are there, and on PostgreSQL. There is no SQS but that of
// Amazon: the strict server in this process stands for it.
func real(t testing.TB, broker string, messages, poison int) *site {
	t.Helper()
	prefix := strings.ReplaceAll(brokertest.Name(t, "soak"), "-", "_") + "_"
	dsn, err := url.Parse(brokertest.PG(t))
	if err != nil {
		t.Fatal("PG_DSN is no URL")
	}
	q := dsn.Query()
	q.Set("application_name", prefix)
	dsn.RawQuery = q.Encode()
	s := &site{t: t, plan: plan{Broker: broker, Messages: messages, Poison: poison, Lease: realLease, Queue: brokertest.Name(t, "soak"),
		Driver: "pgx", DSN: dsn.String(), Prefix: prefix}}
	switch broker {
	case "rabbitmq":
		s.through(brokertest.AMQP(t))
	case "kafka":
		s.direct(strings.Join(brokertest.Kafka(t), ","))
	case "sqs":
		s.through(sqstest.New(t).URL)
	}
	s.prepare()
	return s
}

func (s *site) direct(addr string) { s.plan.Addr, s.plan.Proxy = addr, addr }

// joined waits until all consumers that were hired have been let in. A member that is
// killed while its first joining waits for the answer is never timed out by the embedded
// Kafka, and its partitions stand still for ever; a real one times it out.
func (s *site) joined(hired int) {
	if s.kafka == nil {
		return
	}
	eventually(s.t, "all consumers are in the group", func() bool {
		g := s.kafka.GroupInfo(s.plan.Queue)
		if g == nil || g.State != "Stable" || len(g.Members) != consumers { // a dead one still counts for a while
			return false
		}
		for _, m := range g.Members {
			s.members[m.MemberID] = true
		}
		return len(s.members) >= hired
	})
}

// through puts a proxy before consumers.
func (s *site) through(addr string) {
	u, err := url.Parse(addr)
	if err != nil {
		s.t.Fatal("the broker's address is no URL")
	}
	s.proxy = faultproxy.New(s.t, u.Host)
	u.Host = s.proxy.Addr()
	s.plan.Addr, s.plan.Proxy = addr, u.String()
}

func (s *site) prepare() {
	s.t.Helper()
	s.plan.Ledger = filepath.Join(s.t.TempDir(), "ledger")
	db, err := s.plan.open(4)
	if err != nil {
		s.t.Fatal(err)
	}
	s.db = db
	s.t.Cleanup(func() { _ = db.Close() })
	ddl, err := mutex.DDL(s.plan.dialect(), s.plan.tables())
	if err != nil {
		s.t.Fatal(err)
	}
	s.exec(ddl)
	s.exec("CREATE TABLE " + s.plan.orders() + " (n integer PRIMARY KEY)")
	s.exec("CREATE TABLE " + s.plan.effects() + " (id varchar(64) NOT NULL)")
	tables := s.plan.tables()
	s.t.Cleanup(func() {
		for _, table := range []string{s.plan.orders(), s.plan.effects(), tables.Mutex, tables.Outbox, tables.Shards, tables.Inbox} {
			_, _ = s.db.ExecContext(context.Background(), "DROP TABLE "+table)
		}
	})
}

func (s *site) exec(query string) {
	s.t.Helper()
	if _, err := s.db.ExecContext(context.Background(), query); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
}

// count asks until it gets an answer: a SQLite file may be busy.
func (s *site) count(query string) (n int) {
	s.t.Helper()
	if err := s.db.QueryRowContext(context.Background(), query).Scan(&n); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (s *site) ordered() int { return s.count("SELECT count(*) FROM " + s.plan.orders()) }
func (s *site) effects() int { return s.count("SELECT count(*) FROM " + s.plan.effects()) }
func (s *site) paid() int    { return s.count("SELECT count(DISTINCT id) FROM " + s.plan.effects()) }
func (s *site) rows() int    { return s.count("SELECT count(*) FROM " + s.plan.tables().Mutex) }
func (s *site) unsent() int  { return s.count("SELECT count(*) FROM " + s.plan.tables().Outbox) }

// twice is how many messages have more than one effect.
func (s *site) twice() int {
	return s.count("SELECT count(*) FROM (SELECT id FROM " + s.plan.effects() + " GROUP BY id HAVING count(*) > 1) d")
}

// undone is how many transactions that were rolled back have an effect.
func (s *site) undone() int {
	return s.count("SELECT count(*) FROM " + s.plan.effects() + " WHERE id LIKE 'rolled%'")
}

// endSession ends a random session of the crew, on PostgreSQL.
func (s *site) endSession() int {
	if s.plan.Driver != "pgx" {
		return 0
	}
	return s.count("SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = '" +
		s.plan.Prefix + "' AND pid <> pg_backend_pid() AND state <> 'idle' ORDER BY random() LIMIT 1) x")
}

// ledger counts the lines of what happened.
func (s *site) ledger() (delivered, runs int) {
	s.t.Helper()
	f, err := os.Open(s.plan.Ledger)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "run ") {
			runs++
		} else {
			delivered++
		}
	}
	return delivered, runs
}
