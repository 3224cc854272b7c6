// Package interop has tests alone: what Spring AMQP, Spring for Apache Kafka and Spring
// Cloud AWS write is read here, and what is written here is read by their listeners.
// The program in jvm is that other side; `make spring` builds it with Maven and runs the
// tests with it on real brokers.
//
//	make spring                            # with the JVM and real brokers
//	go test ./interop/spring               # with what the JVM wrote before
//
// What it wrote is kept in testdata as it lay in the broker, so that the default run
// reads it from embedded servers, without Java. LONGSHORE_WRITE_GOLDEN=1 writes it again.
package interop
