// Package postgres shows whether the tests on a real PostgreSQL ran: see zz_realbrokers.
package postgres
