// Package soak kills producers and consumers of the mutex at random and counts what
// they leave behind. It has nothing but tests: a short form on embedded brokers in the
// default suite, and the long one on real brokers and PostgreSQL:
//
//	make soak-mutex
package soak
