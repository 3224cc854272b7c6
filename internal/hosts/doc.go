// Package hosts distinguishes this machine from others by their names and addresses.
//
//	if !hosts.Loopback("rabbit.internal") {
//		warn()                             // the password leaves this machine
//	}
package hosts
