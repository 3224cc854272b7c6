package mutex_test

import (
	"context"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

func TestDiagnoseOfTheEightStates(t *testing.T) {
	const yes, no = mutex.Yes, mutex.No
	for _, c := range []struct {
		row, dead, queue mutex.Found
		state            mutex.State
		action           mutex.Action
		safe             bool
	}{
		{yes, yes, yes, mutex.StateWorking, mutex.ActionWait, false},
		{yes, yes, no, mutex.StateFailed, mutex.ActionRerun, true},
		{yes, no, yes, mutex.StateQueued, mutex.ActionWait, false},
		{yes, no, no, mutex.StatePending, mutex.ActionInvestigate, false},
		{no, yes, yes, mutex.StateUnprotected, mutex.ActionInvestigate, false},
		{no, yes, no, mutex.StateCopyDone, mutex.ActionDelete, true},
		{no, no, yes, mutex.StateCopyWaiting, mutex.ActionInvestigate, false},
		{no, no, no, mutex.StateNothing, mutex.ActionNone, false},
	} {
		f := mutex.Diagnose(mutex.Lookup{ID: "a", Row: c.row, DeadLetter: c.dead, Queue: c.queue})
		if f.State != c.state || f.Action != c.action || f.Safe != c.safe || f.Meaning == "" || f.Advice == "" {
			t.Errorf("%v %v %v: %+v", c.row, c.dead, c.queue, f)
		}
	}
}

func TestDiagnoseUsesLockAndOutbox(t *testing.T) {
	in := mutex.Lookup{Row: mutex.Yes, Locked: mutex.Yes, DeadLetter: mutex.Yes, Queue: mutex.No}
	if f := mutex.Diagnose(in); f.State != mutex.StateWorking || f.Safe {
		t.Errorf("locked: %+v", f)
	}
	in = mutex.Lookup{Row: mutex.Yes, DeadLetter: mutex.No, Queue: mutex.No, Outbox: mutex.Yes}
	if f := mutex.Diagnose(in); f.State != mutex.StatePending || f.Action != mutex.ActionRelay {
		t.Errorf("in the outbox: %+v", f)
	}
	in.Outbox = mutex.No
	if f := mutex.Diagnose(in); f.State != mutex.StateOrphan {
		t.Errorf("not in the outbox: %+v", f)
	}
}

// What is not known is never taken for a no: an action would follow from it.
func TestDiagnoseDoesNotGuess(t *testing.T) {
	all := []mutex.Found{mutex.Unknown, mutex.No, mutex.Yes}
	for _, row := range all {
		for _, dead := range all {
			for _, queue := range all {
				f := mutex.Diagnose(mutex.Lookup{Row: row, DeadLetter: dead, Queue: queue})
				if f.Safe && (row == mutex.Unknown || dead == mutex.Unknown || queue == mutex.Unknown) {
					t.Errorf("%v %v %v: %+v", row, dead, queue, f)
				}
			}
		}
	}
}

func TestRowsAreSeenWithTheirHolders(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		m := e.mutex(mutex.Config{HasOutbox: true})
		e.add(e.outbox(&sink{}, mutex.OutboxConfig{}), message("a", ""))
		e.row("b")
		rows, err := m.Rows(t.Context(), 0, 10)
		if err != nil || len(rows) != 2 {
			t.Fatalf("%v, %v", rows, err)
		}
		if e.dialect == mutex.SQLite {
			return
		}
		is(t, run(t, m, longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
			rows, err := m.Rows(ctx, 0, 10, "b", "nobody")
			if err != nil || len(rows) != 1 || rows[0].Outbox != mutex.No {
				t.Errorf("%+v, %v", rows, err)
			}
			if e.dialect == mutex.Postgres && (rows[0].Locked != mutex.Yes || rows[0].Holder == "") {
				t.Errorf("%+v", rows)
			}
			return nil
		}), delivery("b")), longshore.VerdictAck)
	})
}
