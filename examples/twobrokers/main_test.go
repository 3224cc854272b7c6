package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if err := consumeIfChild(context.Background()); !errors.Is(err, errParent) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func TestEachIDHasOneEffectThoughBothBrokersBringIt(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, os.Args[0], size{ids: 1000, kills: 3}); err != nil {
		t.Fatal(err, out.String())
	}
	if !strings.Contains(out.String(), "1000 effects of 1000 ids") {
		t.Error(out.String())
	}
}
