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
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func TestEachOrderIsPaidOnce(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, os.Args[0]); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "300 paid once") {
		t.Error(out.String())
	}
}
