package kafka

import (
	"hash/crc32"
	"hash/fnv"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/internal/problem"
)

// This file is about what others see of our records: who confirms them, how they are
// compressed, and which partition they are in.

// check finds all that is wrong with how one publishes.
func (c *PublisherConfig) check() error {
	l := &problem.List{Op: "kafka publisher"}
	if c.Timeout < 0 || c.Timeout > 0 && c.Timeout < time.Second {
		l.Range("PublisherConfig.Timeout", c.Timeout, "1s or more, or 0 for the default, 30s{?; to bound a single call use its context}")
	}
	if c.Linger < 0 {
		l.Range("PublisherConfig.Linger", c.Linger, "0 or more")
	}
	if c.MaxBatchBytes < 0 {
		l.Range("PublisherConfig.MaxBatchBytes", c.MaxBatchBytes, "positive, or 0 for the default, 1000012")
	}
	if c.Acks > AcksLeader {
		l.Range("PublisherConfig.Acks", c.Acks, "{AcksAll} or {AcksLeader}")
	}
	c.together(l)
	return l.Err()
}

// codecs are those of the batches, the first that the broker knows.
func (c *PublisherConfig) codecs() []kgo.CompressionCodec {
	if len(c.Compression) == 0 {
		return []kgo.CompressionCodec{kgo.NoCompression()}
	}
	return slices.Clone(c.Compression)
}

// acks are the options for whose confirmation counts.
func (c *PublisherConfig) acks() []kgo.Opt {
	if c.Acks == AcksLeader { // the broker drops repeated records only with the other
		return []kgo.Opt{kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()}
	}
	return []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks())}
}

// Codecs are the names of compression in files and URLs, the default first.
func Codecs() []string { return []string{"none", "gzip", "snappy", "lz4", "zstd"} }

// Codec returns the compression of a name of [Codecs]; false: there is none.
func Codec(name string) (c kgo.CompressionCodec, ok bool) {
	switch name {
	case "", "none":
		return kgo.NoCompression(), true
	case "gzip":
		return kgo.GzipCompression(), true
	case "snappy":
		return kgo.SnappyCompression(), true
	case "lz4":
		return kgo.Lz4Compression(), true
	case "zstd":
		return kgo.ZstdCompression(), true
	}
	return c, false
}

// Hashes are the names of partitioners in files and URLs, the default first: murmur2 is that
// of Java's clients, crc32 librdkafka's, fnv1a Sarama's.
func Hashes() []string { return []string{"murmur2", "crc32", "fnv1a"} }

// PartitionBy returns the partitioner with a hash of [Hashes], for a topic that clients of
// another kind write too: records of one key go to one partition only if all agree. nil: there
// is no such hash.
func PartitionBy(hash string) kgo.Partitioner {
	switch hash {
	case "", "murmur2":
		return kgo.StickyKeyPartitioner(nil)
	case "crc32":
		return kgo.StickyKeyPartitioner(func(key []byte, n int) int {
			return int(crc32.ChecksumIEEE(key) % uint32(n)) //nolint:gosec // a number of partitions
		})
	case "fnv1a":
		return kgo.StickyKeyPartitioner(kgo.SaramaCompatHasher(func(key []byte) uint32 {
			h := fnv.New32a()
			_, _ = h.Write(key) // never fails
			return h.Sum32()
		}))
	}
	return nil
}
