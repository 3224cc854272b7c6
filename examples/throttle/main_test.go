package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"a total of 6 for all       3 instances obeyed; at most  6 calls at once,",
			"0: the ledger is replaced  3 instances obeyed; at most  0 calls at once,    0 orders in 1s",
			"a total of 24 for all      3 instances obeyed; at most 24 calls at once,",
			"5000 orders handled, 0 broken, redelivered 0",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
	})
}
