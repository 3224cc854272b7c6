//go:build unix

// Command cluster puts three brokers and three consuming processes under fire, writes down
// everything that producers and handlers do, and lets tools/historycheck judge the history.
//
//	make jepsen ON=rabbitmq LONGSHORE_JEPSEN_FOR=10m LONGSHORE_JEPSEN_SEED=7
//
// Two producers with confirms send messages of twenty keys, numbered by key. Three processes
// consume them by key through a container that scales itself; half of the keys have their
// effect in PostgreSQL behind the mutex. A nemesis, whose choices a seed decides, kills,
// freezes and isolates brokers, cuts the links between them, restarts them in turn, and
// kills, freezes and restarts consumers. At the end everything is healed and what
// is left is read.
//
// Reading order: main.go, nodes.go (the brokers and their links), nemesis.go (what is broken),
// produce.go, consume.go (the process that is tested), brokers.go (what differs between
// RabbitMQ and Kafka), effects.go.
package main
