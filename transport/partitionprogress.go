package transport

// PartitionProgress is how far a consumer has come in one of its partitions.
type PartitionProgress struct {
	Topic     string // of the partition
	Partition int32  // its number
	// Position is that of the next message that will be handed out; -1: not known.
	Position int64
	// End is the position after the newest message; -1: not known.
	End int64
	// Committed is where the next owner of the partition goes on; -1: the broker has no
	// position yet.
	Committed int64
}

// Lag is how many positions lie between what is committed, or what was handed out where
// nothing is, and the end; -1: not known.
func (p PartitionProgress) Lag() int64 {
	from := p.Committed
	if from < 0 {
		from = p.Position
	}
	if from < 0 || p.End < 0 {
		return -1
	}
	return max(0, p.End-from)
}
