package brokertest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// managementPort is where RabbitMQ's HTTP API is unless AMQP_MANAGEMENT says
// otherwise.
const managementPort = "15672"

// AMQP returns the URL of a fresh vhost on the RabbitMQ of AMQP_URL, removed with
// all that is in it when t ends. The vhost is made through the management API
// (AMQP_MANAGEMENT, http://user:password@host:port; by default port 15672 of the
// same host with the URL's user). A broker without it is refused rather than
// tested on a vhost that may hold another user's queues.
func AMQP(t testing.TB) string {
	t.Helper()
	broker := value(t, RabbitMQ)
	m, err := managementOf(broker, os.Getenv("AMQP_MANAGEMENT"))
	if err != nil {
		t.Fatal(err)
	}
	return m.freshVhost(t, broker)
}

// Policy sets a policy on the vhost of a URL that [AMQP] or [Node] returned: what its
// definition says of all queues whose names match the pattern. It goes with the vhost.
func Policy(t testing.TB, vhostURL, name, pattern, definition string) {
	t.Helper()
	m, err := managementOf(vhostURL, os.Getenv("AMQP_MANAGEMENT"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(vhostURL)
	if err != nil {
		t.Fatal(hideURL(err))
	}
	body := fmt.Sprintf(`{"pattern":%q,"apply-to":"queues","priority":1,"definition":%s}`, pattern, definition)
	if err := m.call(http.MethodPut, "/api/policies/"+url.PathEscape(strings.TrimPrefix(u.Path, "/"))+"/"+url.PathEscape(name), body); err != nil {
		t.Fatal(err)
	}
}

// Management returns the address of the management API of the broker that a URL of [AMQP]
// leads to, without a login.
func Management(t testing.TB, vhostURL string) string {
	t.Helper()
	m, err := managementOf(vhostURL, os.Getenv("AMQP_MANAGEMENT"))
	if err != nil {
		t.Fatal(err)
	}
	return m.base
}

// managementOf finds the management API that belongs to the broker's URL.
func managementOf(broker, given string) (*management, error) {
	if given != "" {
		return newManagement(given)
	}
	u, err := url.Parse(broker)
	if err != nil {
		return nil, hideURL(err)
	}
	u.Scheme, u.Path, u.RawQuery = "http", "", ""
	u.Host = net.JoinHostPort(u.Hostname(), managementPort)
	return newManagement(u.String())
}

// freshVhost makes a vhost for t and returns the broker's URL with it.
func (m *management) freshVhost(t testing.TB, broker string) string {
	t.Helper()
	u, err := url.Parse(broker)
	if err != nil {
		t.Fatal(hideURL(err))
	}
	vhost := Name(t, t.Name())
	if err := m.addVhost(vhost, u.User.Username()); err != nil {
		t.Fatalf("a vhost for the test: %v\nThe test needs the management API of the broker; set AMQP_MANAGEMENT=http://user:password@host:15672", err)
	}
	t.Cleanup(func() {
		if err := m.deleteVhost(vhost); err != nil {
			t.Errorf("removing the test's vhost: %v", err)
		}
	})
	u.Path, u.RawPath = "/"+vhost, ""
	return u.String()
}

// AMQPAccounts makes users on the RabbitMQ of AMQP_URL, names to passwords, that may do
// anything in a fresh vhost, and returns the broker's host:port. All is removed when t
// ends. Users and vhosts are of the whole broker: let their names begin with [Name].
func AMQPAccounts(t testing.TB, vhost string, users map[string]string) (addr string) {
	t.Helper()
	broker := value(t, RabbitMQ)
	m, err := managementOf(broker, os.Getenv("AMQP_MANAGEMENT"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(broker)
	if err != nil {
		t.Fatal(hideURL(err))
	}
	if err := m.addVhost(vhost, u.User.Username()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.deleteVhost(vhost); err != nil {
			t.Error(err)
		}
	})
	for name, password := range users {
		if err := m.addUser(name, password); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.deleteUser(name); err != nil {
				t.Error(err)
			}
		})
		if err := m.addVhost(vhost, name); err != nil { // it is there: only the permission
			t.Fatal(err)
		}
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "5672")
	}
	return u.Host
}

// AMQPPermissions replaces what a user of [AMQPAccounts] may do in a vhost by the patterns of
// rabbitmqctl set_permissions.
func AMQPPermissions(t testing.TB, vhost, user, configure, write, read string) {
	t.Helper()
	m, err := managementOf(value(t, RabbitMQ), os.Getenv("AMQP_MANAGEMENT"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"configure": configure, "write": write, "read": read})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.call(http.MethodPut, "/api/permissions/"+url.PathEscape(vhost)+"/"+url.PathEscape(user), string(body)); err != nil {
		t.Fatal(err)
	}
}

// CloseConnections closes the connections of the vhost in amqpURL (one that
// [AMQP] returned) from the broker's side; the client sees a connection.close
// with code 320. It needs RABBITMQCTL, which `make test` sets.
func CloseConnections(t testing.TB, amqpURL string) {
	t.Helper()
	ctl := os.Getenv("RABBITMQCTL")
	if ctl == "" {
		notRun(t, "set RABBITMQCTL to a rabbitmqctl that reaches the broker, or use `make test`")
	}
	u, err := url.Parse(amqpURL)
	if err != nil {
		t.Fatal(hideURL(err))
	}
	mustOutput(t, ctl, "-q", "close_all_connections", "--vhost", u.Path[1:], "closed by a test")
}

// hideURL keeps a URL with its password out of the error that quotes it.
func hideURL(err error) error {
	if e, ok := err.(*url.Error); ok { //nolint:errorlint // url.Parse returns exactly this
		return e.Err
	}
	return err
}
