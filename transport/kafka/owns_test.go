package kafka

import (
	"testing"

	"github.com/longshore-go/longshore/transport"
)

// F-C01: what is committed for a partition is of this assignment: the broker takes a commit
// for any partition from any member.
func TestCommitOfPartitionsThatWent(t *testing.T) {
	t.Parallel()
	c := newConsumer(New([]string{"none"}, Config{}).Group("g", []string{"orders"}, GroupConfig{}), transport.OpenOptions{}, newTurns(false))
	here := func(num int32) *partition {
		p := newPartition(c.with, c.topics, partitionOf{topic: "orders", num: num}, 5, -1)
		c.assignments.parts[p.key.tp()] = p
		return p
	}
	went, back, stays, deleted := here(0), here(1), here(2), here(3)
	delete(c.assignments.parts, went.key.tp())
	moved := stays.successor(9, -1)
	if here(1); c.committer.committable(went) || c.committer.committable(back) {
		t.Error("a partition that went, or came back, is committed for by its old assignment")
	}
	if !c.assignments.replace(stays, moved) || !c.committer.committable(stays) || !c.committer.committable(moved) {
		t.Error("a seek ends the assignment")
	}
	if c.assignments.replace(stays, moved) {
		t.Error("a state that was replaced is replaced again")
	}
	deleted.deleted = true
	recreated := here(4)
	c.topics.setID("orders", [16]byte{1})
	if c.committer.committable(deleted) || c.committer.committable(recreated) {
		t.Error("the old topic's position is committed for the new one")
	}
}
