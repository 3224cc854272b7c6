// Package faultproxy is a TCP proxy inside the test process that breaks
// connections on demand: it cuts (FIN), resets (RST), swallows, delays and
// refuses them, and comes back on the same port.
//
//	proxy := faultproxy.New(t, "127.0.0.1:5672")
//	url := "amqp://guest:guest@" + proxy.Addr() + "/"
//	// … connect through url …
//	proxy.ResetAll()       // every live connection gets a RST
//	proxy.Refuse()         // no connection gets in
//	err := proxy.Listen()  // same address as before
//
// The plain faults know nothing of what is inside and fit every protocol.
// [Proxy.CutAtMethod] reads AMQP 0-9-1 frames: it ends a connection at the n-th
// method that the client sends after the handshake, which is the way to break a
// recovery in each of its steps.
//
// All methods are safe for concurrent use. The proxy's goroutines are gone when
// [Proxy.Close] returns.
package faultproxy
