package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// IdentityRefused returns why a producer has no identity and never asks for one again; nil
// if it has one, or still asks. An idempotent client of franz-go (v1.22.3,
// pkg/kgo/producer.go; https://github.com/twmb/franz-go/issues/26 is one report) asks once:
// a client that was refused fails each record from then on, even after the permission was
// given. The client answers from memory; ProducerID wants a context anyway.
func IdentityRefused(cl *kgo.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _, err := cl.ProducerID(ctx)
	var ke *kerr.Error
	if errors.As(err, &ke) && !kerr.IsRetriable(ke) {
		return ke
	}
	return nil
}
