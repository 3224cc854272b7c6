package kafka

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore"
)

const defaultPort = "9092"

// parseAddrs checks the seed addresses: host, host:port, IPv4, IPv6 with or
// without brackets and zone. Blanks around an entry are taken off.
func parseAddrs(addrs []string) (seeds []string, problem error) {
	if len(addrs) == 0 {
		return nil, badAddress("no address is given", "name at least one broker, host:port")
	}
	var problems []error
	for i, a := range addrs {
		seed, err := parseAddr(strings.TrimSpace(a))
		if err != nil {
			if strings.ContainsAny(a, "@") { // what stands before it may be a password
				a = "…" + a[strings.LastIndex(a, "@"):]
			}
			problems = append(problems, badAddress(fmt.Sprintf("entry %d %.80q %v", i+1, a, err), "write host or host:port, one for each entry"))
			continue
		}
		seeds = append(seeds, seed)
	}
	return seeds, errors.Join(problems...)
}

func badAddress(what, hint string) error {
	return &longshore.Error{Code: longshore.CodeBadAddress, Op: "kafka address", Err: errors.New(what), Hint: hint}
}

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
		return "", fmt.Errorf("has the port %.20q", port)
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
