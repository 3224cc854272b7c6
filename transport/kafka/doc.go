// Package kafka consumes from and publishes to Apache Kafka, on franz-go.
//
//	broker := kafka.New([]string{"k1:9092", "k2:9092"}, kafka.Config{TLS: true})
//	orders := broker.Group("billing", []string{"orders"}, kafka.GroupConfig{})
//	c, err := container.New(orders, pay, container.Config{DeadLetter: container.DeadLetter{To: "orders.dlt"}})
//
// Records of a partition are worked on at once and done in any order; the
// committed offset is the last of those that are done without a gap, plus one. What
// is done above it travels in the metadata of the commit, so that a crash with one
// stuck record does not repeat all that is done behind it.
//
// A delivery belongs to the assignment of its partition: when that goes to another
// member, what still runs after [GroupConfig.RebalanceDrain] is lost, its context ends with
// longshore.ErrLost, and its late ack changes nothing.
//
// Delivery.Native is the *kgo.Record.
package kafka
