package brokertest

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
)

// The variables that say where each broker is.
const (
	RabbitMQ   = "AMQP_URL"
	KafkaNodes = "KAFKA_ADDRS"
	SQSServer  = "SQS_ENDPOINT"
	Postgres   = "PG_DSN"
	MariaDBDSN = "MARIADB_DSN"
)

// required says whether an absent broker is a failure.
func required() bool { return os.Getenv("LONGSHORE_BROKERS") == "required" }

// Kafka returns the addresses of the Kafka nodes (KAFKA_ADDRS, separated by
// commas). Topics and groups are shared with other tests: see [Name].
func Kafka(t testing.TB) []string {
	t.Helper()
	return strings.Split(value(t, KafkaNodes), ",")
}

// SQS returns the base URL of an SQS-compatible server (SQS_ENDPOINT). Queues are
// shared with other tests: see [Name].
func SQS(t testing.TB) string {
	t.Helper()
	return value(t, SQSServer)
}

// PG returns the PostgreSQL connection string (PG_DSN). The database is shared
// with other tests: see [Name].
func PG(t testing.TB) string {
	t.Helper()
	return value(t, Postgres)
}

// MariaDB returns the MariaDB data source name (MARIADB_DSN). The database is
// shared with other tests: see [Name].
func MariaDB(t testing.TB) string {
	t.Helper()
	return value(t, MariaDBDSN)
}

// value returns the variable, or ends the test as not run (failed, when brokers
// are required).
func value(t testing.TB, variable string) string {
	t.Helper()
	v := os.Getenv(variable)
	if v == "" {
		notRun(t, "set "+variable+", or use `make test`")
	}
	return v
}

func notRun(t testing.TB, how string) {
	t.Helper()
	if required() {
		t.Fatalf("LONGSHORE_BROKERS=required, but this test cannot run: %s", how)
	}
	t.Skipf("not run here: %s", how)
}

// Presence is for the packages under zz_realbrokers. Without the variable it ends
// the test as not run, and go test writes "[no tests to run]" behind the package's
// name: the only thing it shows of a package that passes. It writes so when it finds
// the line below in the output. Filtering the tests out would give the line too,
// but then go test does not know that its cached result depends on the variable.
func Presence(t testing.TB, variable string) {
	t.Helper()
	if os.Getenv(variable) == "" && !required() {
		_, _ = os.Stdout.WriteString("testing: warning: no tests to run\n")
	}
	_ = value(t, variable)
}

// Name returns prefix with a suffix that no other test and no earlier run has,
// made of letters, digits and hyphens (topic, queue, group and table names).
func Name(t testing.TB, prefix string) string {
	t.Helper()
	clean := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	name := strings.Map(clean, prefix)
	return name[:min(len(name), 50)] + "-" + strings.ToLower(rand.Text()[:10])
}
