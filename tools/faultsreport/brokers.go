package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokers asks each broker and database that is given for its version, and leaves
// out the others.
func brokers() map[string]string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out := map[string]string{}
	for _, b := range []struct {
		name, variable string
		version        func(ctx context.Context, address string) (string, error)
	}{
		{"RabbitMQ", "AMQP_URL", rabbitVersion},
		{"Kafka", "KAFKA_ADDRS", kafkaVersion},
		{"ElasticMQ", "SQS_ENDPOINT", elasticVersion},
		{"PostgreSQL", "PG_DSN", sqlVersion("pgx", "show server_version")},
		{"MariaDB", "MARIADB_DSN", sqlVersion("mysql", "select version()")},
	} {
		address := os.Getenv(b.variable)
		if address == "" {
			continue
		}
		version, err := b.version(ctx, address)
		if err != nil { // an address may hold a password, and so may the error
			version = "version unknown"
		}
		out[b.name] = version
	}
	return out
}

func rabbitVersion(_ context.Context, url string) (string, error) {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // nothing depends on it
	return fmt.Sprint(conn.Properties["version"]), nil
}

func kafkaVersion(ctx context.Context, addrs string) (string, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(addrs, ",")...))
	if err != nil {
		return "", err
	}
	defer cl.Close()
	versions, err := kadm.NewClient(cl).ApiVersions(ctx)
	if err != nil {
		return "", err
	}
	for _, v := range versions {
		return strings.TrimPrefix(v.VersionGuess(), "v"), v.Err
	}
	return "", fmt.Errorf("no broker answered")
}

// elasticVersion is not told by the server: it is the one that scripts/brokers gets.
func elasticVersion(context.Context, string) (string, error) {
	text, err := os.ReadFile("scripts/lib/brokers/java.sh")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), "="); ok && name == "ELASTICMQ_VERSION" {
			return strings.Trim(version, `"'`), nil
		}
	}
	return "", fmt.Errorf("no version found")
}

func sqlVersion(driver, query string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, dsn string) (string, error) {
		db, err := sql.Open(driver, dsn)
		if err != nil {
			return "", err
		}
		defer func() { _ = db.Close() }() // nothing depends on it
		var version string
		err = db.QueryRowContext(ctx, query).Scan(&version)
		version, _, _ = strings.Cut(version, " ")
		return version, err
	}
}
