package container

import (
	"errors"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// What is the fault of one message says nothing about its destination. F-N18
func TestDestinationFault(t *testing.T) {
	for code, concerns := range map[longshore.Code]bool{
		longshore.CodeTooLarge: false, longshore.CodeBadHeader: false, longshore.CodeRefused: false,
		longshore.CodeTimeout: true, longshore.CodeUnreachable: true, longshore.CodeConnLost: true, longshore.CodeBlocked: true,
		longshore.CodeNotFound: true, longshore.CodeForbidden: true, longshore.CodeAuth: true, longshore.CodeUnroutable: true,
	} {
		err := &longshore.Error{Code: code, Err: errors.New("why")}
		for _, err := range []error{err, &transport.PartialError{Total: 1, Failed: map[int]error{0: err}}} {
			if got := destinationFault(err) != nil; got != concerns {
				t.Errorf("%s concerns the destination: %v, want %v", code, got, concerns)
			}
		}
	}
	if destinationFault(nil) != nil || destinationFault(errors.New("unknown")) == nil {
		t.Error("nil and unknown errors")
	}
}
