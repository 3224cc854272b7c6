package main

import (
	"fmt"
	"strings"
)

// edit is a fault of one line, put into the code.
type edit struct {
	name     string
	file     string
	old, new string   // old must be there exactly once
	packages []string // whose fault tests have to see it
}

// apply returns the file with the fault in it.
func (e edit) apply(whole []byte) ([]byte, error) {
	if n := strings.Count(string(whole), e.old); n != 1 {
		return nil, fmt.Errorf("the line to break is %d times in %s: adapt tools/sabotage/edits.go", n, e.file)
	}
	return []byte(strings.Replace(string(whole), e.old, e.new, 1)), nil
}

func edits() []edit {
	mutexTests := []string{"./middleware/mutex"}
	return []edit{
		{"skip Flush", "container/shutdown.go",
			"\t\tif d.alive(g) {\n\t\t\terrs = append(errs, d.callUntil(end, g.c.Flush))",
			"\t\tif d.alive(g) && end.IsZero() {\n\t\t\terrs = append(errs, d.callUntil(end, g.c.Flush))",
			[]string{"./faults"}},
		{"drop the revoke fence", "transport/kafka/membership.go",
			"\t\tp.release(m.src.taken(p.key, \"the partition went to another member before the record was done\"))",
			"\t\t_ = m.src.taken(p.key, \"the partition went to another member before the record was done\")",
			[]string{"./transport/kafka"}},
		{"count parked as slots", "container/internal/dispatch/ledger.go",
			"max(g.Retries().N-g.limits.Retries, 0)",
			"g.Retries().N",
			[]string{"./container"}},
		{"ack before confirm", "container/deadletter.go",
			"\t\tif down := t.dead.publish(own, it.copyIdentity(), j.err, it.dead != nil); down != nil {\n",
			"\t\tid, again := it.copyIdentity(), it.dead != nil\n\t\tgo func() { _ = t.dead.publish(own, id, j.err, again) }()\n\t\tif down := error(nil); down != nil {\n",
			[]string{"./container", "./faults"}},
		{"reuse the old channel", "transport/amqp/internal/conn/shared.go",
			"\tif l.cur == nil || l.cur.Ended() {",
			"\tif l.cur == nil {",
			[]string{"./transport/amqp"}},
		{"ignore Owned", "delivery.go",
			"func (d *Delivery) Owned() bool { return d.state.Load() == 0 }",
			"func (d *Delivery) Owned() bool { return d.state.Load() != stateSuperseded }",
			[]string{"./container", "./transport/sqs", "./faults"}},
		{"extend once", "transport/sqs/visibility.go",
			"\th.extending = false\n\tif after = h.after; after != nil {",
			"\th.extending, h.capped = false, true\n\tif after = h.after; after != nil {",
			[]string{"./transport/sqs"}},
		{"no READ COMMITTED", "middleware/mutex/sqlstore.go",
			"return &sql.TxOptions{Isolation: sql.LevelReadCommitted}",
			"return &sql.TxOptions{Isolation: sql.LevelDefault}",
			mutexTests},
		{"swallow 1213", "middleware/mutex/errorclass.go",
			"\tcase 1213, 1020, 3101:\n\t\treturn ClassRolledBack",
			"\tcase 1213, 1020, 3101:\n\t\treturn ClassDuplicate",
			mutexTests},
		{"publish before commit", "middleware/mutex/outbox.go",
			"\tcommit, cancel := context.WithTimeout(life, defaultCommitTimeout)\n\tdefer cancel()\n\tif err := tx.Commit(commit); err != nil {\n\t\treturn &longshore.Error{Code: longshore.CodeConnLost, Op: \"commit with an outbox\"",
			"\tcommit, cancel := context.WithTimeout(life, defaultCommitTimeout)\n\tdefer cancel()\n\tafter.run(life)\n\tif err := tx.Commit(commit); err != nil {\n\t\treturn &longshore.Error{Code: longshore.CodeConnLost, Op: \"commit with an outbox\"",
			[]string{"./faults"}},
	}
}
