// Command bench measures Longshore beside a hand-written loop, Watermill and gocloud,
// in one run on one machine, and prints ratios.
//
//	go run . -case hot            # in process, nothing needed
//	AMQP_URL=amqp://… go run . -case rabbit
//	go run . -case sqs            # ElasticMQ too, with SQS_ENDPOINT
//	go run . -case kafka          # KAFKA_ADDRS, else a broker in process; kafka/no-op is a part
//
// `make scale` runs -case scale, what much of something costs, for
// docs/explanation/scale.md. `make bench-jvm` builds and runs the cases beside Java libraries, -case jvm.
//
// How to read it: all variants of a case run one after the other inside each round,
// the order rotates, and a ratio is the median of the ratios within the rounds. Wall
// time on shared cores swings; process CPU time per message (getrusage) is printed
// beside it. `make bench` runs everything that its brokers allow.
package main
