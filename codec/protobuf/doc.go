// Package protobuf is the codec for application/x-protobuf. It stands apart from the
// root package, which needs nothing but the standard library.
//
//	handler := longshore.Typed(protobuf.Codec{}, func(ctx context.Context, o *shop.Order, d *longshore.Delivery) error {
//		return pay(ctx, o.GetId())
//	})
//
// For messages of several kinds of producers put it into longshore.ContentTypes, under
// each name that they use:
//
//	codec := longshore.ContentTypes{Types: protobuf.Types()}
//	codec.Types["application/json"] = longshore.JSON{}
//
// A body says nothing about its type: bytes of another message often decode, into
// nonsense. Where one queue has several types, choose by the message's type
// (middleware/router) or with a schema registry (codec/registry).
package protobuf
