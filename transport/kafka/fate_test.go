package kafka

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Which failures a record may owe to another. F-N18
func TestFateOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		over bool
		want fate
	}{
		{nil, false, settled},
		{fmt.Errorf("%w (uncompressed_bytes=1)", kerr.MessageTooLarge), false, refused},
		{kerr.RecordListTooLarge, false, refused},
		{kerr.InvalidTimestamp, false, refused},
		{kerr.InvalidRecord, false, refused},
		{kerr.CorruptMessage, false, refused},
		{kerr.MessageTooLarge, true, settled},
		{context.Canceled, false, late},
		{context.Canceled, true, settled},
		{&net.OpError{Op: "dial", Err: os.ErrClosed}, false, late},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, false, settled},
		{kerr.TopicAuthorizationFailed, false, settled},
		{kerr.UnknownTopicOrPartition, false, settled},
		{kgo.ErrClientClosed, false, settled},
		{kgo.ErrRecordRetries, false, settled},
	} {
		if got := fateOf(c.err, c.over); got != c.want {
			t.Errorf("%v, over %v: %d, want %d", c.err, c.over, got, c.want)
		}
	}
}
