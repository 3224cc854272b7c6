package admin

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/logs"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
)

// DefaultAddr is where the API listens by default.
const DefaultAddr = "127.0.0.1:8391"

// Config says what is served where and to whom. The zero value listens on
// [DefaultAddr] and has nothing to show.
type Config struct {
	// Addr is host and port. Zero: DefaultAddr. Port 0 is any free one. At an address that
	// other hosts can reach and without Operators, those hosts get health and metrics only.
	Addr string
	// Containers are shown and steered, by their names.
	Containers []*container.ListenerContainer
	// Instance names this process where several are shown together. Zero: the host's name.
	Instance string
	// DeadLetters are the places of dead letters by the names of their containers. Without an
	// entry it is the place that DeadLetter.To names, on the container's broker; on Kafka that
	// can be looked at and purged, but a replay needs a consumer group of its own: an entry.
	DeadLetters map[string]transport.Source
	// Mask are parts of names: headers and fields of JSON bodies that have one in their name
	// are hidden. nil: password, secret, token, authorization, card, iban, cvc and cvv.
	Mask []string
	// Actions are buttons of the service itself, for operators.
	Actions []Action
	// Fleet makes throttles with scope "fleet" possible; nil: they are refused.
	Fleet *throttle.Fleet
	// Operators may look and change, Viewers may look: names and their tokens, which
	// must have at least 16 characters and are asked for at each request.
	Operators, Viewers map[string]transport.Secret
	// Hosts are names under which the API may be reached besides Addr's, localhost and
	// plain addresses.
	Hosts []string
	// TokenFile is where the token is written that is made when there are no
	// Operators. Zero: TokenFile(Addr).
	TokenFile string
	// TLS serves https. nil: http.
	TLS *tls.Config
	// Metrics is served at /metrics; nil: not found.
	Metrics http.Handler
	// Around returns a handler that serves more, or serves differently, and leaves the rest to
	// the API's. It is behind the checks of hosts and sites; who asks is its own business. nil:
	// the API alone.
	Around func(api http.Handler) http.Handler
	// Logger gets a line for each change, at level info. nil: stderr.
	Logger *zap.Logger

	// localToken: other hosts can reach Addr and no operator is configured, so the token
	// that is made at the start counts for this host alone.
	localToken bool
}

// MinToken is the least number of characters of a token. A shorter one is refused.
const MinToken = 16

// check fills in defaults and returns everything that is wrong.
func (c *Config) check() error {
	l := &problem.List{Op: "serve the admin API"}
	if c.Addr == "" {
		c.Addr = DefaultAddr
	}
	if c.Mask == nil {
		c.Mask = []string{"password", "secret", "token", "authorization", "card", "iban", "cvc", "cvv"}
	}
	if c.Instance == "" {
		c.Instance, _ = os.Hostname() // a process without a name is still one
	}
	c.Logger = logs.OrStderr(c.Logger, zapcore.InfoLevel) // changes are rare, and the log has to show them
	host, port, err := net.SplitHostPort(c.Addr)
	if err == nil {
		if _, perr := strconv.ParseUint(port, 10, 16); perr != nil {
			l.Bad("Addr", "write for example "+DefaultAddr, "%q has a port that is not a number from 0 to 65535", c.Addr)
		}
	}
	if err != nil {
		l.Bad("Addr", "write for example "+DefaultAddr, "%q is not host:port", c.Addr)
	}
	c.localToken = !loopback(host) && len(c.Operators) == 0
	seen := map[string]bool{}
	for i, c := range c.Containers {
		switch {
		case c == nil:
			l.Bad(fmt.Sprintf("Containers[%d]", i), "leave it out", "is nil")
		case seen[c.Name()]:
			l.Bad("Containers", "set container.Config.Name", "has two containers with the name %q", c.Name())
		default:
			seen[c.Name()] = true
		}
	}
	for kind, who := range map[string]map[string]transport.Secret{"Operators": c.Operators, "Viewers": c.Viewers} {
		for name, s := range who {
			if name == "" || s.IsZero() {
				l.Bad(kind, "give each a name and a token", "has an entry %q without a name or a token", name)
			}
		}
	}
	return l.Err()
}

// loopback says whether a host can be reached from this machine only.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
