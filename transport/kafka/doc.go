// Package kafka consumes from and publishes to Apache Kafka.
package kafka
