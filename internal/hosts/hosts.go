package hosts

import (
	"net"
	"strings"
)

// Loopback reports whether what is sent to the host, without its port, stays on this
// machine. Names below localhost do by RFC 6761.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
