package throttle

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// nowhere stands for the source of what comes by other means.
type nowhere struct{}

func (nowhere) Open(context.Context, transport.OpenOptions) (transport.Consumer, error) {
	return nil, errors.ErrUnsupported
}

func (nowhere) Capabilities() longshore.Capabilities { return longshore.Capabilities{} }
