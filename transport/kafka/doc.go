// Package kafka consumes from and publishes to Apache Kafka, on franz-go.
//
//	broker := kafka.New([]string{"k1:9092", "k2:9092"}, kafka.Config{TLS: true})
//	orders := broker.Group("billing", []string{"orders"}, kafka.GroupConfig{})
//	c, err := container.New(orders, pay, container.Config{DeadLetter: container.DeadLetter{To: "orders.dlt"}})
//
// Records of a partition are handled concurrently and done in any order; the committed
// offset is the last of those that are done without a gap, plus one. The metadata of the
// commit describes the records done above it, so that a crash with one stuck record does not
// repeat everything after it.
//
// A delivery belongs to the assignment of its partition. When the partition goes to another
// member, handlers that still run after [GroupConfig.RebalanceDrain] lose their deliveries:
// their contexts end with longshore.ErrLost, and late acknowledgements change nothing.
//
// Delivery.Native is the *kgo.Record.
//
// # What always holds
//
//   - The committed offset never passes a record that is not done, and goes back only by
//     a Seek.
//   - A settlement reaches the assignment that its delivery came from. After that assignment
//     was released it changes nothing, also if the partition has come back meanwhile: the
//     assignment is then another object.
//   - A partition that leaves has its progress committed before the client lets the group go
//     on, because the next owner reads the position right after that.
//   - No more records of a partition are handed out than the metadata of a commit can
//     describe (internal/offsets), so an orderly stop repeats nothing that is done.
//   - Positions belong to a topic's identity, not to its name. Brokers give topics an identity
//     from 2.8 on; on older ones a topic that was deleted and made again within seconds looks
//     like one whose log was cut off.
//
// # What brokers do
//
//   - A group coordinator takes a commit as one batch and refuses it whole if it is too large;
//     it refuses a partition's metadata above offset.metadata.max.bytes (4,096 by default).
//   - A classic group refuses commits of members while it is joining, and forgets a member
//     after SessionTimeout without a heartbeat; a failed request alone ends no session.
//   - Topics take 1,048,588 bytes of a batch by default (max.message.bytes), as it is stored:
//     compressed. franz-go's own limit is lower, 1,000,012.
//   - The leader answers fetches of a partition that it lost with an error; a leader that is
//     frozen answers nothing, which looks like a partition without new records.
//
// # Parts
//
// In reading order. broker.go and group.go are the public face, with config.go, options.go,
// validate.go and errors.go. [Group] also answers without consuming: topicsurvey.go (what an
// opening checks and creates), declarediff.go, describe.go, groupprogress.go, browse.go.
//
// consumer.go wires the parts of one opened consumer; lifetime.go is its course, shutdown.go
// its end:
//
//   - poller.go: moves what the client has fetched to the partitions; flow.go bounds it.
//   - partition.go: one assignment of a partition and the settler of its deliveries. Its
//     parts: fetchbuffer.go (fetched and not handed out), givenback.go (waiting for the next
//     attempt), ledger.go (acknowledged, and what of it is committed), blockedpartition.go
//     (the oldest record), window.go (how much may be in hand).
//   - turns.go: Receive, the partitions in turn.
//   - assignments.go: the partitions that this member has; gate.go keeps polling and
//     rebalances apart. membership.go is what the group calls, startpoint.go where a new
//     assignment begins, topics.go the identities of topics, broadcast.go the same without
//     a group.
//   - committer.go: commits. With transactions, outputs.go keeps what handlers publish until
//     transaction.go commits it together with the positions; opentransactions.go watches
//     those of others that hold readers up. seek.go moves a position.
//   - members.go: several members behind one consumer, each with connections of its own.
//   - watcher.go: whether the cluster answers; leaderliveness.go, whether each leader does.
//   - topichealth.go: deleted, recreated and forbidden topics; fetcherror.go sorts what a
//     fetch complains of.
//   - reports.go: everything reported to the container.
//
// sharegroup.go is the other public face, of share groups: shareconsumer.go is an opened one,
// sharesettle.go and shareattempts.go its verdicts and attempts, sharesettings.go the group's
// settings; the protocol is in internal/share.
//
// publisher.go publishes: resend.go repeats what failed for the sake of another record,
// largerecord.go what is too large for a batch of several, producerswap.go and
// publishprobe.go replace and probe the client.
//
// internal/offsets is the pure core: the tracker of the records done, and its text. internal/cluster
// holds the questions to a cluster, and what works around franz-go.
package kafka
