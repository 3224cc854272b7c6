package main

import "github.com/longshore-go/longshore/tools/textedit"

// edit is a fault of one line, put into the code.
type edit struct {
	textedit.Edit
	packages []string // whose fault tests have to see it
}

func edits() []edit {
	mutexTests := []string{"./middleware/mutex"}
	return []edit{
		{textedit.Edit{Name: "skip Flush", File: "container/shutdown.go",
			Old: "\t\tif d.alive(g) {\n\t\t\terrs = append(errs, d.callUntil(end, g.c.Flush))",
			New: "\t\tif d.alive(g) && end.IsZero() {\n\t\t\terrs = append(errs, d.callUntil(end, g.c.Flush))"},
			[]string{"./faults"}},
		{textedit.Edit{Name: "drop the revoke fence", File: "transport/kafka/membership.go",
			Old: "\t\tp.release(m.src.taken(p.key, \"the partition went to another member before the record was done\"))",
			New: "\t\t_ = m.src.taken(p.key, \"the partition went to another member before the record was done\")"},
			[]string{"./transport/kafka"}},
		{textedit.Edit{Name: "count parked as slots", File: "container/internal/dispatch/ledger.go",
			Old: "max(g.Retries().N-g.limits.Retries, 0)",
			New: "g.Retries().N"},
			[]string{"./container"}},
		{textedit.Edit{Name: "ack before confirm", File: "container/deadletter.go",
			Old: "\t\tif down := t.dead.publish(own, it.copyIdentity(), j.err, it.dead != nil); down != nil {\n",
			New: "\t\tid, again := it.copyIdentity(), it.dead != nil\n\t\tgo func() { _ = t.dead.publish(own, id, j.err, again) }()\n\t\tif down := error(nil); down != nil {\n"},
			[]string{"./container", "./faults"}},
		{textedit.Edit{Name: "reuse the old channel", File: "transport/amqp/internal/conn/shared.go",
			Old: "\tif l.cur == nil || l.cur.Ended() {",
			New: "\tif l.cur == nil {"},
			[]string{"./transport/amqp"}},
		{textedit.Edit{Name: "ignore Owned", File: "delivery.go",
			Old: "func (d *Delivery) Owned() bool { return d.state.Load() == 0 }",
			New: "func (d *Delivery) Owned() bool { return d.state.Load() != stateSuperseded }"},
			[]string{"./container", "./transport/sqs", "./faults"}},
		{textedit.Edit{Name: "extend once", File: "transport/sqs/visibility.go",
			Old: "\th.extending = false\n\tif after = h.after; after != nil {",
			New: "\th.extending, h.capped = false, true\n\tif after = h.after; after != nil {"},
			[]string{"./transport/sqs"}},
		{textedit.Edit{Name: "no READ COMMITTED", File: "middleware/mutex/sqlstore.go",
			Old: "return &sql.TxOptions{Isolation: sql.LevelReadCommitted}",
			New: "return &sql.TxOptions{Isolation: sql.LevelDefault}"},
			mutexTests},
		{textedit.Edit{Name: "swallow 1213", File: "middleware/mutex/errorclass.go",
			Old: "\tcase 1213, 1020, 3101:\n\t\treturn ClassRolledBack",
			New: "\tcase 1213, 1020, 3101:\n\t\treturn ClassDuplicate"},
			mutexTests},
		{textedit.Edit{Name: "publish before commit", File: "middleware/mutex/outbox.go",
			Old: "\tcommit, cancel := context.WithTimeout(life, defaultCommitTimeout)\n\tdefer cancel()\n\tif err := tx.Commit(commit); err != nil {\n\t\treturn &longshore.Error{Code: longshore.CodeConnLost, Op: \"commit with an outbox\"",
			New: "\tcommit, cancel := context.WithTimeout(life, defaultCommitTimeout)\n\tdefer cancel()\n\tafter.run(life)\n\tif err := tx.Commit(commit); err != nil {\n\t\treturn &longshore.Error{Code: longshore.CodeConnLost, Op: \"commit with an outbox\""},
			[]string{"./faults"}},
	}
}
