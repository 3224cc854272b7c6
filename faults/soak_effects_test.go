package faults

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/effects"
)

// soakEffects are the effects of a leg. nil: the leg counts none.
type soakEffects struct{ *effects.Table }

// newSoakEffects makes the tables of a leg, which go with the test.
func newSoakEffects(t *testing.T) *soakEffects {
	t.Helper()
	prefix := strings.ReplaceAll(brokertest.Name(t, "soak"), "-", "_") + "_"
	table, err := effects.Create(t.Context(), brokertest.PG(t), prefix[max(0, len(prefix)-20):]) // a name of PostgreSQL has 63 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Drop(context.Background()) })
	return &soakEffects{table}
}

// openSoakEffects opens them in a child, with the middleware that makes them single.
func openSoakEffects(prefix string) (*soakEffects, []longshore.Middleware, error) {
	if prefix == "" {
		return nil, nil, nil
	}
	table, once, err := effects.Open(os.Getenv(brokertest.Postgres), prefix, soakLogger())
	return &soakEffects{table}, []longshore.Middleware{once}, err
}

func (e *soakEffects) close() {
	if e != nil {
		e.Close()
	}
}

func (e *soakEffects) add(ctx context.Context, d *longshore.Delivery) error {
	if e == nil {
		return nil
	}
	return e.Add(ctx, string(d.Body), string(d.Key))
}

// judge wants one effect of each message that was sent, those of a key in order.
func (e *soakEffects) judge(t *testing.T, kind string, sent int) {
	t.Helper()
	all, err := e.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts, disorder := map[string]int{}, 0
	latest := map[string]int{}
	for _, one := range all {
		n, err := strconv.Atoi(one.ID)
		if err != nil {
			t.Errorf("%s: an effect of %q, which was never sent", kind, one.ID)
		}
		if counts[one.ID]++; n < latest[one.Key] {
			disorder++
		}
		latest[one.Key] = max(latest[one.Key], n)
	}
	none, several := 0, 0
	for i := range sent {
		switch counts[fmt.Sprint(i)] {
		case 0:
			none++
		case 1:
		default:
			several++
		}
	}
	t.Logf("%s: %d effects of %d messages: %d without, %d with several, %d out of order", kind, len(counts), sent, none, several, disorder)
	if none+several+disorder > 0 || len(counts) != sent {
		t.Errorf("%s: want one effect of each of %d messages, in order", kind, sent)
	}
}
