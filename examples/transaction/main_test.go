package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachOrderHasOnePrice(t *testing.T) {
	t.Setenv("KAFKA_ADDRS", "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "2000 prices, 0 orders with more than one") || strings.Contains(out.String(), " 0 failed") {
		t.Error(out.String())
	}
}
