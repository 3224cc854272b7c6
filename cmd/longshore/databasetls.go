package main

import (
	"net/url"
	"strings"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/hosts"
)

// What a database URL says of TLS is done, or the URL is refused: a driver that ignores a
// word, or goes on in clear where the server has no TLS, would send the password so.

// mysqlParameters refuses what speaks of TLS and does not lead to it.
func mysqlParameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return &cli.UsageError{Text: "the parameters of the database URL cannot be read", Hint: "percent-encode them"}
	}
	for name, v := range values {
		low := strings.ToLower(name)
		switch {
		case low == "tls" && name != "tls":
			return &cli.UsageError{Text: "the database URL has the parameter " + quote(name), Hint: "write tls=true"}
		case name == "tls" && strings.EqualFold(v[len(v)-1], "preferred"):
			return &cli.UsageError{Text: "tls=preferred continues without TLS if the server has none", Hint: "write tls=true, or tls=false to go without"}
		case strings.HasPrefix(low, "ssl"), strings.HasPrefix(low, "usessl"), strings.HasPrefix(low, "requiressl"), strings.HasPrefix(low, "tls-"), strings.HasPrefix(low, "tls_"):
			return &cli.UsageError{Text: "the database URL has the parameter " + quote(name) + ", which the driver does not know", Hint: "write tls=true for TLS; the certificate is verified by the system's authorities"}
		}
	}
	return nil
}

// postgresTLS refuses what speaks of TLS and may go on without.
func postgresTLS(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return nil //nolint:nilerr // the driver says what is wrong, without the password
	}
	q := u.Query()
	mode, said := q.Get("sslmode"), q.Has("sslmode")
	if said && (mode == "allow" || mode == "prefer") {
		return &cli.UsageError{Text: "sslmode=" + mode + " continues without TLS if the server has none", Hint: "write sslmode=verify-full or require, or disable to go without"}
	}
	for _, name := range []string{"sslrootcert", "sslcert", "sslkey", "sslsni", "sslpassword"} {
		if q.Has(name) && (!said || mode == "disable") {
			return &cli.UsageError{Text: name + " does not go with sslmode " + quote(mode) + ": the connection may go without TLS", Hint: "write sslmode=verify-full"}
		}
	}
	return nil
}

// clearDatabase is a warning about a password that goes to another host without TLS; "" if
// none does.
func clearDatabase(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || hosts.Loopback(u.Hostname()) || u.Hostname() == "" {
		return ""
	}
	q := u.Query()
	secure, hint := false, ""
	switch u.Scheme {
	case "postgres", "postgresql":
		mode := q.Get("sslmode")
		secure, hint = mode == "require" || mode == "verify-ca" || mode == "verify-full", "add sslmode=verify-full"
	case "mysql", "mariadb":
		secure, hint = q.Get("tls") == "true" || q.Get("tls") == "skip-verify", "add tls=true"
	default:
		return ""
	}
	if secure {
		return ""
	}
	return "the login goes to the database at " + u.Host + " without TLS, or may: anyone on the way can read it; " + hint
}
