// Package hosts tells this machine from others by their names and addresses.
package hosts

import "net"

// Loopback tells whether what is sent to the host, without its port, stays on this
// machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
