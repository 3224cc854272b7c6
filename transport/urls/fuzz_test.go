package urls_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/urls"
)

// Whatever a URL looks like, what is wrong with it is typed, and
// its password is not in it.
func FuzzSource(f *testing.F) {
	const password = "kanarie7"
	for i, rest := range []string{"h:1/v?queue=q", "h1,h2/orders?group=g", "orders?region=r", "orders?prefetch=0", "[::1/%zz?heartbeat=x&a=b"} {
		f.Add(uint8(i), rest)
	}
	f.Fuzz(func(t *testing.T, kind uint8, rest string) {
		schemes := []string{"amqp://", "kafka://", "sqs://", "mem://", "amqps://u:" + password + "@", "kafkas://u:" + password + "@", ""}
		src, err := urls.Source(schemes[int(kind)%len(schemes)] + rest)
		typed := (*longshore.Error)(nil)
		switch {
		case strings.Contains(rest, password):
		case err == nil && src == nil || err != nil && !errors.As(err, &typed):
			t.Errorf("%q: %v, %v", rest, src, err)
		case err != nil && strings.Contains(fmt.Sprintf("%v %+v", err, err), password):
			t.Errorf("%q: %v", rest, err)
		}
	})
}
