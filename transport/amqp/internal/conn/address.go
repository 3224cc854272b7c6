package conn

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/edit"
	"github.com/longshore-go/longshore/internal/problem"
)

// Address is what a URL says. Zero fields are not in it.
type Address struct {
	TLS            bool          // the scheme is amqps
	Nodes          []Node        // of the cluster, one at least
	User, Password string        // decoded
	HasUser        bool          // there is a user part, which may be empty
	VHost          string        // decoded; "/" without a path
	External       bool          // auth_mechanism=external: the client certificate is the login
	Heartbeat      time.Duration // heartbeat
	Timeout        time.Duration // connection_timeout
	CAFile         string        // cacertfile: the authorities that may sign the broker's certificate
	CertFile       string        // certfile: the client certificate
	KeyFile        string        // keyfile: its key
	PeerName       string        // server_name_indication: the name that the broker's certificate must have
}

// Node is one broker of a cluster.
type Node struct{ Host, Port string }

func (n Node) String() string { return net.JoinHostPort(n.Host, n.Port) }

const encodeHint = "percent-encode / ? # @ : % in user, password and virtual host{?, or use Config.User and Config.Password, which take them as they are}"

// ParseURL reads amqp[s]://[user[:password]@]host[:port][,host[:port]…][/vhost][?query].
// It reads by hand, because url.Parse quotes its input in errors, password
// included, and returns all problems at once.
func ParseURL(raw string) (Address, error) {
	a := Address{VHost: "/"}
	rest, err := a.scheme(raw)
	if err != nil {
		return a, err
	}
	if strings.ContainsAny(rest, "#") {
		return a, BadURL(encodeHint, "the URL has a # in it, which ends an address")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, hasPath := strings.Cut(rest, "/")
	if strings.Contains(path, "@") || strings.Contains(query, "@") {
		return a, BadURL(encodeHint, "the URL has an @ behind its host")
	}
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	hosts := authority
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		hosts = authority[i+1:]
		add(a.userinfo(authority[:i]))
	}
	add(a.hosts(hosts))
	if hasPath {
		add(a.path(path))
	}
	add(a.query(query))
	return a, errors.Join(errs...)
}

func (a *Address) scheme(raw string) (rest string, err error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	switch {
	case strings.TrimSpace(raw) == "":
		return "", BadURL("write amqp://host/vhost", "the URL is empty")
	case !ok:
		return "", BadURL("write amqp://host/vhost, or amqps:// for TLS", "the URL has no scheme")
	case strings.EqualFold(scheme, "amqp"):
	case strings.EqualFold(scheme, "amqps"):
		a.TLS = true
	default:
		return "", BadURL("write amqp://host/vhost, or amqps:// for TLS", "the URL's scheme is neither amqp nor amqps")
	}
	return rest, nil
}

func (a *Address) userinfo(s string) error {
	user, password, _ := strings.Cut(s, ":")
	u, err1 := url.PathUnescape(user)
	p, err2 := url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return BadURL(encodeHint, "a %% in the URL's user or password is not followed by two hex digits")
	}
	a.User, a.Password, a.HasUser = u, p, true
	return nil
}

// path maps the URL's path to a virtual host: none and "/" are the virtual host
// "/", as with amqp091-go; everything else is the path without its first slash,
// decoded.
func (a *Address) path(p string) error {
	v, err := url.PathUnescape(p)
	if err != nil {
		return BadURL(encodeHint, "a %% in the URL's virtual host is not followed by two hex digits")
	}
	if v != "" {
		a.VHost = v
	}
	if len(a.VHost) > maxShort {
		return BadURL("", "the virtual host's name is longer than 255 bytes")
	}
	return nil
}

func (a *Address) hosts(s string) error {
	var errs []error
	for i, h := range strings.Split(s, ",") {
		if h == "" && s == "" {
			h = "localhost"
		}
		n, err := ParseNode(h, a.TLS)
		if err != nil {
			// Not quoted: a password that was not encoded would be in it.
			p := problem.Bad("", encodeHint, "host %d of the URL %v", i+1, err)
			if errors.Is(err, errPort) {
				p = p.In(problem.Port)
			}
			errs = append(errs, BadAddress(p))
			continue
		}
		a.Nodes = append(a.Nodes, n)
	}
	return errors.Join(errs...)
}

func (a *Address) query(q string) error {
	values, err := url.ParseQuery(q)
	if err != nil {
		return BadURL(encodeHint, "the URL's query cannot be read")
	}
	var errs []error
	for name, v := range values {
		if err := a.parameter(name, v[len(v)-1]); err != nil {
			errs = append(errs, BadAddress(err.In(problem.Parameter)))
		}
	}
	return errors.Join(errs...)
}

func (a *Address) parameter(name, v string) *problem.Problem {
	switch name {
	case "heartbeat":
		return number(&a.Heartbeat, name, v, time.Second, 65535)
	case "connection_timeout":
		return number(&a.Timeout, name, v, time.Millisecond, 1<<31)
	case "auth_mechanism":
		switch strings.ToLower(v) {
		case "plain":
		case "external":
			a.External = true
		default:
			return problem.Bad(name, near(v, "plain", "external")+"it must be plain or external", "has an unknown value").OfKind(problem.UnknownWord)
		}
	case "cacertfile":
		a.CAFile = v
	case "certfile":
		a.CertFile = v
	case "keyfile":
		a.KeyFile = v
	case "server_name_indication":
		a.PeerName = v
	default:
		return problem.Bad(name, "known parameters: auth_mechanism, cacertfile, certfile, connection_timeout, heartbeat, keyfile and server_name_indication", "is unknown").OfKind(problem.UnknownName)
	}
	return nil
}

// near is the word that a misspelt value most likely stands for. The value is not shown:
// it may be the end of a password.
func near(v string, words ...string) string {
	if w := edit.Nearest(v, words); w != "" {
		return fmt.Sprintf("did you mean %q? ", w)
	}
	return ""
}

// number reads a count of units. A wrong one is not shown: it may be the end of a password.
func number(into *time.Duration, name, v string, unit time.Duration, limit int64) *problem.Problem {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 1 || n > limit {
		return problem.Bad(name, fmt.Sprintf("it must be a number from 1 to %d", limit), "is out of range or not a number").OfKind(problem.OutOfRange)
	}
	*into = time.Duration(n) * unit
	return nil
}

// ParseNode reads name, name:port, IPv4, ::1, [::1] and [::1]:port, with zone.
func ParseNode(s string, tls bool) (Node, error) {
	n := Node{Host: s, Port: "5672"}
	if tls {
		n.Port = "5671"
	}
	switch {
	case s == "":
		return n, errors.New("is empty")
	case strings.ContainsAny(s, " \t\r\n"):
		return n, errors.New("has a blank in it")
	case strings.Contains(s, "://"):
		return n, errors.New("has a protocol in front of it; only host and port belong here")
	case strings.ContainsAny(s, "@/?#\\"):
		return n, errors.New("has a character in it that no host name has")
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return n, nil // also ::1, which has no port
	}
	if strings.HasPrefix(s, "[") {
		return bracketed(s, n)
	}
	host, port, hasPort := strings.Cut(s, ":")
	n.Host = host
	switch {
	case host == "":
		return n, errors.New("has no host name")
	case strings.ContainsAny(host, "[]%"):
		return n, errors.New("has a character in it that no host name has")
	case strings.Contains(port, ":"):
		return n, errors.New("has more than one port; an IPv6 address with a port is written [::1]:5672")
	case hasPort:
		n.Port = port
		return n, checkPort(port)
	}
	return n, nil
}

func bracketed(s string, n Node) (Node, error) {
	host, rest, ok := strings.Cut(s[1:], "]")
	host = strings.Replace(host, "%25", "%", 1) // a zone as RFC 6874 writes it in URLs
	addr, err := netip.ParseAddr(host)
	switch {
	case !ok:
		return n, errors.New("has no closing ]")
	case err != nil || !addr.Is6():
		return n, errors.New("has no IPv6 address in its brackets")
	}
	n.Host = host
	if rest == "" {
		return n, nil
	}
	port, ok := strings.CutPrefix(rest, ":")
	if !ok {
		return n, errors.New("has something after its ] that is not a port")
	}
	n.Port = port
	return n, checkPort(port)
}

// errPort is a mistake in a port, which a configuration file can point at.
var errPort = errors.New("has a port that is not a number from 1 to 65535")

func checkPort(port string) error {
	if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
		return errPort
	}
	return nil
}

// BadAddress is the error of an address that cannot be read.
func BadAddress(p *problem.Problem) error {
	e := p.Of("rabbitmq address", "")
	e.Code = longshore.CodeBadAddress
	return e
}

// BadURL is anything that is wrong with the URL as a whole.
func BadURL(hint, what string, args ...any) error {
	return BadAddress(problem.Bad("", hint, what, args...))
}
