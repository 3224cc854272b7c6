package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestManyWorkersOnOnePartition(t *testing.T) {
	t.Setenv("KAFKA_ADDRS", "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "500 of 500 records of one partition") || strings.Contains(out.String(), "up to 1 workers") {
		t.Error(out.String())
	}
}
