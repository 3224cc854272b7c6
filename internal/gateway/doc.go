// Package gateway is the admin API of many instances as one: what the page of longshore
// console talks to. Everything that the instances stream is handed on, once for all viewers,
// with the name of the instance; a request about one container is forwarded to its instance
// with the operator's token of that instance. Who may ask is decided by the admin server in
// front of it.
package gateway
