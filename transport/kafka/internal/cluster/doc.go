// Package cluster asks a Kafka cluster what franz-go does not ask, and corrects what
// franz-go does differently from what this driver promises. Each file is named after the
// behaviour that it adds or works around and says which versions have it, so that it can
// be deleted when they no longer do.
//
//	ends, err := cluster.ListOffsets(ctx, cl, map[string][]int32{"orders": {0, 1}}, cluster.Newest, false)
//
// Questions, in reading order:
//
//   - hedgedrequest.go: the first answer of any broker, however many are silent.
//   - metadata.go: topics, the coordinator, and whether any broker answers.
//   - listoffsets.go: where logs begin and end.
//
// Behaviours of franz-go v1.22 that are worked around:
//
//   - sessiondial.go: a refused dial of a classic group's heartbeat ends the session.
//   - removedmember.go: a removed member that joins again keeps its partitions.
//   - commitduringjoin.go: commits wait while a classic group is joined.
//   - leaveduringjoin.go: so does leaving, and a static member of a KIP-848 group leaves
//     without its name.
//   - unpackbound.go: one fetch unpacks any number of batches.
//   - produceridentity.go: a producer that was refused an identity fails for ever.
//
// Nothing here knows of consumers, deliveries or configuration.
package cluster
