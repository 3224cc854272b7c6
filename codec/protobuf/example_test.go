package protobuf_test

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/codec/protobuf"
)

func Example() {
	handler := longshore.Typed(protobuf.Codec{}, func(_ context.Context, v *durationpb.Duration, _ *longshore.Delivery) error {
		fmt.Println(v.AsDuration())
		return nil
	})
	d := longshore.NewDelivery(context.Background(), nil, 1)
	if err := (protobuf.Codec{}).Encode(context.Background(), &durationpb.Duration{Seconds: 90}, &d.Message); err != nil {
		fmt.Println(err)
	}
	fmt.Println(d.ContentType, handler.Handle(context.Background(), d))
	// Output:
	// 1m30s
	// application/x-protobuf <nil>
}
