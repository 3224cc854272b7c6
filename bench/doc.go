// Command bench measures Longshore beside a hand-written loop, Watermill and gocloud,
// in one run on one machine, and prints ratios.
//
//	go run . -case hot            # in process, nothing needed
//	AMQP_URL=amqp://… go run . -case rabbit
//	go run . -case sqs            # ElasticMQ too, with SQS_ENDPOINT
//	go run . -case kafka          # KAFKA_ADDRS; kafka/no-op is a part
//	go run . -case kafka-fake     # on a broker in this process
//
// `make scale` runs -case scale, what much of something costs, for
// docs/explanation/scale.md. `make bench-jvm` builds and runs the cases beside Java libraries, -case jvm.
//
// How to read it: all variants of a case run one after the other inside each round,
// the order rotates, and a ratio is the median of the ratios within the rounds. Wall
// time on shared cores swings; process CPU time per message (getrusage) is printed
// beside it. `make bench` runs everything that its brokers allow, and says what it did
// not run. The exit code is 1 if a bar is missed or a case failed, 2 if what was asked for
// cannot be measured.
package main
