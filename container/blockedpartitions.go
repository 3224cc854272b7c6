package container

import "github.com/longshore-go/longshore/transport"

// mostPartitions bounds how many blocked partitions Stats lists.
const mostPartitions = 100

// mostBlocked keeps the first of a list, which are those that have stood still the longest.
func mostBlocked(all []transport.BlockedPartition) []transport.BlockedPartition {
	return all[:min(len(all), mostPartitions)]
}
