package postgres_test

import (
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m, brokertest.Postgres) }

// The server answers an SSLRequest with one letter, before any authentication.
func TestServerAnswers(t *testing.T) {
	brokertest.Presence(t, brokertest.Postgres)
	dsn, err := url.Parse(brokertest.PG(t))
	if err != nil {
		t.Fatal("PG_DSN is no URL like postgres://user@host:port/database")
	}
	conn, err := net.DialTimeout("tcp", dsn.Host, 10*time.Second)
	if err != nil {
		t.Fatalf("the server of PG_DSN: %v", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 1)
	if _, err := conn.Read(answer); err != nil || answer[0] != 'S' && answer[0] != 'N' {
		t.Fatalf("the server of PG_DSN answers %q, %v; it is no PostgreSQL", answer, err)
	}
}
