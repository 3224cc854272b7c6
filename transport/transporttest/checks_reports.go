package transporttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// reportChecks are of what people see of a consumer: its progress and its competitors.
func reportChecks() []check {
	return []check{
		{name: "progress", run: reportsProgress},
		{name: "consumers", run: listsConsumers},
	}
}

// reportsProgress checks that positions follow what is handed out, commits what is settled, and
// ends what is published, also while nothing is received.
func reportsProgress(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	p, ok := s.Consumer.(transport.ProgressReporter)
	if !ok {
		e.skip("the consumer does not implement transport.ProgressReporter")
		return
	}
	e.publish(src, bodies(10)...)
	ds := s.take(10)
	var base, sum progressSum
	read := func() progressSum { return e.progress(s, p) }
	e.until("every position is at its end when everything was handed out", func() bool {
		sum = read()
		return sum.known && sum.position == sum.end
	})
	base = sum
	if s.flush(); read().committed >= base.end {
		e.Errorf("everything is reported as committed while 10 messages are unsettled: %+v", read())
	}
	s.ack(ds...)
	s.flush()
	e.until("everything is committed, and the lag is 0, when all were acked", func() bool {
		sum = read()
		return sum.committed == base.end && sum.lag == 0
	})
	e.publish(src, bodies(3)...)
	e.until("the ends are three further, and so is the lag, when three more were published", func() bool {
		sum = read()
		return sum.end == base.end+3 && sum.lag == 3 && sum.position <= base.end
	})
	s.ack(s.take(3)...)
	s.flush()
	e.until("the commits follow", func() bool { return read().committed == base.end+3 })
	s.finish()
	e.holds(src, "after its progress was read")
}

// progressSum joins all partitions.
type progressSum struct {
	position, end, committed, lag int64
	known                         bool // position and end of every partition
}

// progress reads the progress once and checks each line of it.
func (e *env) progress(s *sub, p transport.ProgressReporter) (sum progressSum) {
	e.Helper()
	var list []transport.PartitionProgress
	e.must("PartitionProgress", func(ctx context.Context) error {
		list = p.PartitionProgress(ctx)
		return nil
	})
	if n, ok := s.Consumer.(transport.Partitioner); ok && len(list) > n.Partitions() {
		e.Fatalf("PartitionProgress has %d lines, the consumer %d partitions", len(list), n.Partitions())
	}
	sum.known = len(list) > 0
	seen := map[string]bool{}
	for _, at := range list {
		name := fmt.Sprintf("%s[%d]", at.Topic, at.Partition)
		if seen[name] {
			e.Fatalf("PartitionProgress has %s twice: %+v", name, list)
		}
		seen[name] = true
		if at.Topic == "" || at.End >= 0 && max(at.Position, at.Committed) > at.End || at.Position >= 0 && at.Committed > at.Position {
			e.Fatalf("PartitionProgress reports what cannot be: %+v", at)
		}
		sum.known = sum.known && at.Position >= 0 && at.End >= 0
		sum.position += max(at.Position, 0)
		sum.end += max(at.End, 0)
		sum.committed += max(at.Committed, 0)
		sum.lag += max(at.Lag(), 0)
	}
	return sum
}

// listsConsumers checks that all consumers of a source are listed, that one is the own, and that
// one which has closed is gone.
func listsConsumers(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	lister, ok := s.Consumer.(transport.ConsumerLister)
	if !ok {
		lister, ok = src.(transport.ConsumerLister)
	}
	if !ok {
		e.skip("neither the source nor the consumer implements transport.ConsumerLister")
		return
	}
	first, err := e.consumers(s, lister)
	if longshore.CodeOf(err) == longshore.CodeUnsupported {
		e.hinted(err)
		e.skip("the consumers are not listed here: %v", err)
		return
	}
	if err != nil {
		e.Fatalf("Consumers: %v", err)
	}
	listed := func(what string, n int) {
		e.Helper()
		var last transport.ConsumerList
		if !e.eventually(func() bool {
			last, err = e.consumers(s, lister)
			return err == nil && last.Total == n && len(last.Consumers) == n && ownOf(last) == 1
		}) {
			e.Fatalf("%s: want %d in the list and one of them the own, got %+v (%v)", what, n, last, err)
		}
		if last.At.Before(first.At) {
			e.Errorf("%s: the list of %v is older than the one before, of %v", what, last.At, first.At)
		}
	}
	listed("one consumer is open", 1)
	other := e.open(src, transport.OpenOptions{})
	listed("another one is open too", 2)
	other.shut()
	listed("the other one has closed", 1)
	s.finish()
	e.holds(src, "after its consumers were listed")
}

// consumers reads the list once and checks each line of it. Where the broker lists a consumer by
// its tag, the own one is marked by that, as a container does.
func (e *env) consumers(s *sub, lister transport.ConsumerLister) (list transport.ConsumerList, err error) {
	e.Helper()
	if err = e.do("Consumers", func(ctx context.Context) (err error) {
		list, err = lister.Consumers(ctx)
		return err
	}); err != nil {
		return list, err
	}
	if tagged, ok := s.Consumer.(transport.Tagged); ok {
		list = list.Marked(tagged.ConsumerTag())
	}
	if list.At.IsZero() || list.At.After(time.Now().Add(time.Second)) {
		e.Fatalf("Consumers were read at %v", list.At)
	}
	if len(list.Consumers) > list.Total {
		e.Fatalf("Consumers lists %d of a total of %d", len(list.Consumers), list.Total)
	}
	partitions := 0
	seen := map[string]bool{}
	for _, c := range list.Consumers {
		if c.ID == "" || seen[c.ID] {
			e.Fatalf("Consumers has an id that is empty or there twice: %+v", list.Consumers)
		}
		seen[c.ID] = true
		partitions += max(c.Partitions, 0)
	}
	if partitions > list.Partitions {
		e.Fatalf("Consumers says that %d partitions are shared, and lists owners of %d", list.Partitions, partitions)
	}
	return list, nil
}

func ownOf(list transport.ConsumerList) (n int) {
	for _, c := range list.Consumers {
		if c.Own {
			n++
		}
	}
	return n
}

// hinted checks that an error says what is not supported, and why.
func (e *env) hinted(err error) {
	e.Helper()
	var le *longshore.Error
	if !errors.As(err, &le) || le.Err == nil || le.Op == "" {
		e.Errorf("the error does not say what is not supported, and why: %v", err)
	}
}
