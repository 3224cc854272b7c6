package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore-go/longshore/internal/doctor"
)

// F-N26: what a database URL says of TLS is done, or refused.
func TestDatabaseURLKeepsWhatItSaysOfTLS(t *testing.T) {
	for raw, want := range map[string]string{ // the driver's TLS; "refused"
		"mysql://u:p@db.internal/shop?tls=true":                "true",
		"mysql://u:p@db.internal/shop?parseTime=true&tls=true": "true",
		"mysql://u:p@db.internal/shop?tls=skip-verify":         "skip-verify",
		"mysql://u:p@db.internal/shop?tls=false":               "false",
		"mysql://u:p@db.internal/shop":                         "",
		"mysql://u:p@[::1]/shop?tls=true":                      "true",
		"mysql://u:p@db.internal/shop?tls=preferred":           "refused",
		"mysql://u:p@db.internal/shop?TLS=true":                "refused",
		"mysql://u:p@db.internal/shop?sslmode=require":         "refused",
		"mysql://u:p@db.internal/shop?ssl-mode=REQUIRED":       "refused",
		"mysql://u:p@db.internal/shop?useSSL=true":             "refused",
		"mysql://u:p@db.internal/shop?tls=unregistered":        "refused",
	} {
		dsn, err := mysqlDSN(raw)
		if err != nil {
			if want != "refused" || strings.Contains(err.Error(), "u:p") {
				t.Errorf("%s: %v", raw, err)
			}
			continue
		}
		cfg, err := mysql.ParseDSN(dsn)
		if err != nil || cfg.TLSConfig != want || cfg.Passwd != "p" || cfg.DBName != "shop" {
			t.Errorf("%s: %+v, %v; want TLS %q", raw, cfg, err, want)
		}
	}
	for raw, good := range map[string]bool{
		"postgres://u:p@h/db": true, "postgres://u:p@h/db?sslmode=verify-full&sslrootcert=ca.pem": true, "postgres://u:p@h/db?sslmode=disable": true,
		"postgres://u:p@h/db?sslmode=prefer": false, "postgres://u:p@h/db?sslmode=allow": false,
		"postgres://u:p@h/db?sslrootcert=ca.pem": false, "postgres://u:p@h/db?sslmode=disable&sslcert=c.pem": false,
	} {
		if err := postgresTLS(raw); (err == nil) != good {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// F-N26: a login that is sent to the broker by TLS is not sent to its management API in
// clear.
func TestManagementOfATLSBrokerIsAskedByTLS(t *testing.T) {
	for target, want := range map[string]string{
		"amqps://u:p@h/?queue=q":      "https://h:15671",
		"amqps://u:p@h:5671/?queue=q": "https://h:15671",
		"amqp://u:p@h/?queue=q":       "http://h:15672",
		"amqps://u:p@h:7777/?queue=q": "",
	} {
		var p doctor.Patient
		if err := (&doctorCommand{app: new(app)}).fromTarget(t.Context(), &p, target); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(p.Management)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.Scheme + "://" + u.Host; got != want && p.Management != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}
