// Package brokertest gives tests the real brokers of the machine they run on.
//
//	func TestOrders(t *testing.T) {
//		url := brokertest.AMQP(t) // a vhost of this test's own
//		// …
//	}
//
// Each broker is named by an environment variable: AMQP_URL, KAFKA_ADDRS,
// SQS_ENDPOINT, PG_DSN, MARIADB_DSN. `make test` starts the brokers and sets them;
// whoever has own brokers sets them by hand. Without its variable a test is
// skipped with the variable's name, and the packages under zz_realbrokers show at
// the end of `go test ./...` which brokers were absent. LONGSHORE_BROKERS=required
// turns an absence into a failure, so that CI cannot pass by running nothing.
//
// Tests that break a broker (stop it, fill its memory, kill it) take a second node
// that is theirs alone for the time, by [FaultNode] and [FaultKafka].
package brokertest
