// Package kafka shows whether the tests on a real Kafka ran: see zz_realbrokers.
package kafka
