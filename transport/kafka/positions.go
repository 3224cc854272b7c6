package kafka

import (
	"sync"

	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// positions remembers over reopenings where partitions without a commit began, or how far a
// broadcast has come: a start at the end must not move on with it.
type positions struct {
	mu    sync.Mutex            // reopenings may overlap with a last look of the one before
	at    map[partitionOf]int64 // where reading goes on
	first map[string][16]byte   // the identity that each topic had first; zero: another than now
	parts map[string]int        // how many partitions each topic had first
	all   bool                  // parts holds all topics that existed when reading began
}

// tp names a partition of whatever topic has the name now.
type tp = cluster.Partition

// partitionOf names a partition of one incarnation of a topic.
type partitionOf struct {
	topic string   // for people
	id    [16]byte // distinguishes a topic from its successor of the same name
	num   int32    // within the topic
}

func newPositions() *positions {
	return &positions{at: map[partitionOf]int64{}, first: map[string][16]byte{}, parts: map[string]int{}}
}

// read notes that a topic is read under an identity.
func (p *positions) read(topic string, id [16]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.first[topic]; !known && id != [16]byte{} {
		p.first[topic] = id
	}
}

// formerly notes that a topic was read under another identity.
func (p *positions) formerly(topic string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first[topic] = [16]byte{}
}

// recreated reports whether the topic was read before under another identity.
func (p *positions) recreated(k partitionOf) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, known := p.first[k.topic]
	return known && k.id != [16]byte{} && first != k.id
}

// seen notes how many partitions a topic has, 0 before it was made.
func (p *positions) seen(topic string, partitions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.parts[topic]; !known {
		p.parts[topic] = partitions
	}
}

// listed notes all topics that exist before those of a pattern are read.
func (p *positions) listed(topics map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.all {
		p.parts, p.all = topics, true
	}
}

// came reports whether the partition was made while its topic, or its pattern, was read. It
// may have records before a member is assigned it.
func (p *positions) came(k partitionOf) bool {
	if p.recreated(k) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known := p.parts[k.topic]
	return known && int(k.num) >= n || !known && p.all
}

// get returns where an earlier opening began or came to.
func (p *positions) get(k partitionOf) (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.at[k]
	return at, ok
}

// set notes where a partition goes on.
func (p *positions) set(k partitionOf, at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[k] = at
}

// forget is for a partition of a topic that was deleted.
func (p *positions) forget(k partitionOf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.at, k)
}

// adopt takes what the opening has found.
func (p *positions) adopt(found survey) {
	for name, t := range found.topics {
		p.read(name, t.id)
		p.seen(name, t.partitions)
	}
}
