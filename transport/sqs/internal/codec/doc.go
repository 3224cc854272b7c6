// Package codec translates between [longshore.Message] and SQS messages. Everything in
// it is pure: values in, values out.
//
//	e, err := codec.Encode(m, codec.Options{FIFO: true})
//	codec.Decode(m, received, wrapping)
//
// In reading order: attribute.go (one header and one attribute), encode.go (a message to
// send), decode.go (a received message), snsenvelope.go (SNS and EventBridge envelopes),
// pointer.go (bodies kept in S3, as Amazon's extended client writes them), identity.go
// (the header by which copies are recognised), checksum.go.
package codec
