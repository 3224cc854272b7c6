package mutex_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// nowhere is a database that refuses everything.
type nowhere struct{ err error }

func (n nowhere) Begin(context.Context) (mutex.Tx, error) { return nil, n.err }
func (nowhere) Dialect() mutex.Dialect                    { return mutex.Postgres }
func (nowhere) MaxConns() int                             { return 0 }

// F-H05: a database that takes nothing costs no attempt, so nothing is a failure that a
// container would tell of. That everything comes back is told all the same, and why.
func TestTroubleWithTheDatabaseIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code longshore.Code
	}{
		"away":      {errors.New("connection refused"), longshore.CodeConnLost},
		"read-only": {pgError("25006"), longshore.CodeRefused},
		"no tables": {pgError("42P01"), longshore.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zap.WarnLevel)
				m, err := mutex.New(nowhere{c.err}, mutex.Config{Logger: zap.New(core)})
				if err != nil {
					t.Fatal(err)
				}
				none := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil })
				for range 5 {
					is(t, run(t, m, none, delivery("a")), longshore.VerdictRelease)
				}
				<-time.After(time.Minute) // virtual
				is(t, run(t, m, none, delivery("a")), longshore.VerdictRelease)
				told := logs.FilterMessage("mutex gives a delivery back").All()
				if len(told) != 2 {
					t.Fatalf("told %d times: %v", len(told), logs.All())
				}
				first, second := told[0].ContextMap(), told[1].ContextMap()
				if first["code"] != string(c.code) || first["retry_in"] == nil || second["repeated"] != int64(5) {
					t.Errorf("told %v, then %v", first, second)
				}
			})
		})
	}
}
