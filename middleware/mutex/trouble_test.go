package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// F-H05: what a statement of the handler meets is judged by its code as what the mutex
// itself meets: a deadlock is tried again at once, and a database that takes nothing
// costs no attempt. Else a failover, or a full disk, would empty the queue into its
// dead-letter destination.
func TestWhatAStatementOfTheHandlerMeets(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		codes := map[mutex.Dialect][2]error{
			mutex.Postgres: {pgError("40P01"), pgError("25006")},
			mutex.MySQL:    {&myError{Number: 1213}, &myError{Number: 1290}},
			mutex.SQLite:   {codeError(517), codeError(8)},
		}[e.dialect]
		deadlock, readOnly := fmt.Errorf("insert: %w", codes[0]), fmt.Errorf("insert: %w", codes[1])
		calls := 0
		failing := func(times int, err error) longshore.Handler {
			calls = 0
			return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
				werr := e.write(ctx, d.ID)
				if calls++; calls <= times {
					return errors.Join(werr, err)
				}
				return werr
			})
		}
		m := e.mutex(mutex.Config{})
		e.row("a")
		is(t, run(t, m, failing(2, deadlock), delivery("a")), longshore.VerdictAck)
		if calls != 3 || e.effectCount() != 1 {
			t.Errorf("%d calls, %d effects, want 3 and 1", calls, e.effectCount())
		}
		e.row("b")
		is(t, run(t, m, failing(10, deadlock), delivery("b")), longshore.VerdictNone) // for ever: its own fault
		is(t, run(t, m, failing(1, readOnly), delivery("b")), longshore.VerdictRelease)
		is(t, run(t, m, failing(0, nil), delivery("b")), longshore.VerdictAck)
		if e.effectCount() != 2 {
			t.Errorf("%d effects, want 2", e.effectCount())
		}
	})
}
