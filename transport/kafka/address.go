package kafka

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
)

const defaultPort = "9092"

// parseAddrs checks the seed addresses: host, host:port, IPv4, IPv6 with or
// without brackets and zone. Blanks around an entry are taken off.
func parseAddrs(addrs []string) ([]string, error) {
	if len(addrs) == 0 {
		return nil, badAddress(problem.Bad("", "name at least one broker, host:port", "no address is given").OfKind(problem.Missing))
	}
	var seeds []string
	var problems []error
	for i, a := range addrs {
		seed, err := parseAddr(strings.TrimSpace(a))
		if err != nil {
			if strings.ContainsAny(a, "@") { // what stands before it may be a password
				a = "…" + a[strings.LastIndex(a, "@"):]
			}
			p := problem.Bad("", "write host or host:port, one for each entry", "entry %d %.80q %v", i+1, a, err)
			if errors.Is(err, errPort) {
				p = p.In(problem.Port)
			}
			problems = append(problems, badAddress(p))
			continue
		}
		seeds = append(seeds, seed)
	}
	return seeds, errors.Join(problems...)
}

// badAddress is the error of a seed address.
func badAddress(p *problem.Problem) error {
	e := p.Of("kafka address", "")
	e.Code = longshore.CodeBadAddress
	return e
}

// errPort is a mistake in a port, which a configuration file can point at.
var errPort = errors.New("has a port that is not a number from 1 to 65535")

// parseAddr adds the default port, and refuses what belongs to another kind of address: the client
// would only fail to resolve it.
func parseAddr(a string) (string, error) {
	if a == "" {
		return "", errors.New("is empty")
	}
	if strings.ContainsAny(a, "/@") {
		return "", errors.New("has a protocol, a path or a user in it")
	}
	if ip, err := netip.ParseAddr(a); err == nil { // also ::1 without brackets
		return net.JoinHostPort(ip.String(), defaultPort), nil
	}
	host, port := a, defaultPort
	if inner, ok := strings.CutSuffix(a, "]"); ok && strings.HasPrefix(inner, "[") {
		host = inner[1:]
	} else if strings.Contains(a, ":") {
		var err error
		if host, port, err = net.SplitHostPort(a); err != nil {
			return "", errors.New("is not host:port")
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errPort
	}
	if strings.Contains(host, ":") || strings.HasPrefix(a, "[") {
		if _, err := netip.ParseAddr(host); err != nil {
			return "", errors.New("is not an IPv6 address")
		}
	} else if !validHost(host) {
		return "", errors.New("has no valid host name")
	}
	return net.JoinHostPort(host, port), nil
}

// validHost leaves it to the resolver which names exist, and refuses only what cannot be one.
func validHost(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	for _, r := range host {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`,;[]"'<>\^{}|%`, r) {
			return false
		}
	}
	return true
}
