package logs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/longshore-go/longshore"
)

func TestTheCodeOfAnErrorThatHasNone(t *testing.T) {
	dial := fmt.Errorf("unable to dial: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})
	for _, c := range []struct {
		err  error
		want longshore.Code
	}{
		{dial, longshore.CodeUnreachable},
		{fmt.Errorf("lookup: %w", &net.DNSError{}), longshore.CodeUnreachable},
		{fmt.Errorf("commit: %w", context.DeadlineExceeded), longshore.CodeTimeout},
		{errors.New("no such account"), longshore.CodeHandler},
		{&longshore.Error{Code: longshore.CodeTimeout, Err: dial}, longshore.CodeTimeout},
		{nil, ""},
	} {
		if got := codeOf(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
