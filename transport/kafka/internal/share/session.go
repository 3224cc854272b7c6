package share

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// session is a share session with one broker, as the broker has it: its epoch, and the
// partitions that a fetch is about. A broker takes one request of a session at a time, each
// with the next epoch, and a session is lost with its connection. It makes no calls.
type session struct {
	id     uint64            // of this session, for the records acquired in it; 0: none is open
	epoch  int32             // of the next request
	parts  map[Part]struct{} // that the broker fetches from for this session
	group  string            // named in each request
	member string            // named in each request
}

// finalEpoch closes a session.
const finalEpoch = -1

// limits bound what a fetch acquires.
type limits struct {
	records   int32 // how many records
	waitMs    int32 // how long the broker waits for the first of them
	bytes     int32 // of the whole answer
	partBytes int32 // of one partition
}

// fetch makes a request that acquires records of the wanted partitions and carries a parcel,
// which has no renewals: a request with those acquires nothing. The first request of a
// session may carry nothing.
func (s *session) fetch(want map[Part]struct{}, p *Parcel, lim limits) *kmsg.ShareFetchRequest {
	req := kmsg.NewPtrShareFetchRequest()
	req.GroupID, req.MemberID, req.ShareSessionEpoch = &s.group, &s.member, s.epoch
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = lim.waitMs, 1, lim.bytes
	req.MaxRecords, req.BatchSize = lim.records, lim.records
	req.ShareAcquireMode = 1 // no more records than that (KIP-1206)
	at := map[[16]byte]int{}
	add := func(part Part) *kmsg.ShareFetchRequestTopicPartition {
		i, ok := at[part.Topic]
		if !ok {
			i, at[part.Topic] = len(req.Topics), len(req.Topics)
			t := kmsg.NewShareFetchRequestTopic()
			t.TopicID = part.Topic
			req.Topics = append(req.Topics, t)
		}
		rp := kmsg.NewShareFetchRequestTopicPartition()
		rp.Partition, rp.PartitionMaxBytes = part.Num, lim.partBytes
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, rp)
		return &req.Topics[i].Partitions[len(req.Topics[i].Partitions)-1]
	}
	for _, part := range ordered(want) {
		_, known := s.parts[part]
		if c := p.of(part); c != nil || !known {
			acks(add(part), c)
		}
	}
	forget := map[Part]struct{}{}
	for part := range s.parts {
		if _, ok := want[part]; !ok {
			forget[part] = struct{}{}
		}
	}
	if p != nil {
		for _, part := range ordered(p.parts) {
			if _, ok := want[part]; !ok { // named for its verdicts alone, which adds it to the session
				acks(add(part), p.parts[part])
				forget[part] = struct{}{}
			}
		}
	}
	req.ForgottenTopicsData = forgotten(forget)
	return req
}

// forgotten names the partitions that leave a session.
func forgotten(parts map[Part]struct{}) (out []kmsg.ShareFetchRequestForgottenTopicsData) {
	for _, part := range ordered(parts) {
		if n := len(out); n == 0 || out[n-1].TopicID != part.Topic {
			t := kmsg.NewShareFetchRequestForgottenTopicsData()
			t.TopicID = part.Topic
			out = append(out, t)
		}
		t := &out[len(out)-1]
		t.Partitions = append(t.Partitions, part.Num)
	}
	return out
}

func (p *Parcel) of(part Part) *contents {
	if p == nil {
		return nil
	}
	return p.parts[part]
}

func acks(rp *kmsg.ShareFetchRequestTopicPartition, c *contents) {
	if c == nil {
		return
	}
	for _, a := range c.ranges() {
		b := kmsg.NewShareFetchRequestTopicPartitionAcknowledgementBatch()
		b.FirstOffset, b.LastOffset, b.AcknowledgeTypes = a.first, a.last, []int8{a.kind}
		rp.AcknowledgementBatches = append(rp.AcknowledgementBatches, b)
	}
}

// acknowledge makes a request that carries a parcel and acquires nothing; with final it
// closes the session, and the broker releases what is held in it.
func (s *session) acknowledge(p *Parcel, final bool) *kmsg.ShareAcknowledgeRequest {
	req := kmsg.NewPtrShareAcknowledgeRequest()
	req.GroupID, req.MemberID, req.ShareSessionEpoch = &s.group, &s.member, s.epoch
	if final {
		req.ShareSessionEpoch = finalEpoch
	}
	if p == nil {
		return req
	}
	req.IsRenewAck = p.renews
	for _, part := range ordered(p.parts) {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].TopicID != part.Topic {
			t := kmsg.NewShareAcknowledgeRequestTopic()
			t.TopicID = part.Topic
			req.Topics = append(req.Topics, t)
		}
		rp := kmsg.NewShareAcknowledgeRequestTopicPartition()
		rp.Partition = part.Num
		for _, a := range p.parts[part].ranges() {
			b := kmsg.NewShareAcknowledgeRequestTopicPartitionAcknowledgementBatch()
			b.FirstOffset, b.LastOffset, b.AcknowledgeTypes = a.first, a.last, []int8{a.kind}
			rp.AcknowledgementBatches = append(rp.AcknowledgementBatches, b)
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, rp)
	}
	return req
}

// fetched notes that the broker has taken a fetch: it has added the partitions of the request
// to the session, and then removed the forgotten ones.
func (s *session) fetched(req *kmsg.ShareFetchRequest) {
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			s.parts[Part{t.TopicID, p.Partition}] = struct{}{}
		}
	}
	for _, t := range req.ForgottenTopicsData {
		for _, p := range t.Partitions {
			delete(s.parts, Part{t.TopicID, p})
		}
	}
	s.advance()
}

// advance counts a request that the broker has taken. After the last number comes 1.
func (s *session) advance() { s.epoch = max(1, s.epoch+1) }

// reset forgets the session: the next request opens another one.
func (s *session) reset() { s.id, s.epoch, s.parts = 0, 0, map[Part]struct{}{} }

func ordered[V any](parts map[Part]V) []Part {
	return slices.SortedFunc(maps.Keys(parts), func(a, b Part) int {
		return cmp.Or(slices.Compare(a.Topic[:], b.Topic[:]), cmp.Compare(a.Num, b.Num))
	})
}
