package mariadb_test

import (
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m, brokertest.MariaDBDSN) }

// The server greets with its protocol version, 10, in the first packet.
func TestServerAnswers(t *testing.T) {
	brokertest.Presence(t, brokertest.MariaDBDSN)
	addr := regexp.MustCompile(`@tcp\(([^)]+)\)`).FindStringSubmatch(brokertest.MariaDB(t))
	if addr == nil {
		t.Fatal("MARIADB_DSN is not like user@tcp(host:port)/database")
	}
	conn, err := net.DialTimeout("tcp", addr[1], 10*time.Second)
	if err != nil {
		t.Fatalf("the server of MARIADB_DSN: %v", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	greeting := make([]byte, 5)
	if _, err := conn.Read(greeting); err != nil || greeting[4] != 10 {
		t.Fatalf("the server of MARIADB_DSN greets with % x, %v; it is no MariaDB", greeting, err)
	}
}
