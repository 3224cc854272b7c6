// Package envelope packs what a broker cannot hold of a message into one header,
// and bodies that a broker forbids into ones that it takes.
//
//	e := envelope.Envelope{Properties: map[string]string{"type": m.Type}}
//	text := e.Encode()                 // "1.9a3f.{…}", plain ASCII: the value of the header longshore-env
//	e, ok := envelope.Decode(text)     // false: not ours, or changed on the way; it stays a header
//
// The text is "1." for the version, four hexadecimal digits of the CRC-32C of
// what follows the next dot, and JSON, so that a reader without this package can
// undo it:
//
//	id   stable id                     t   timestamp, nanoseconds since 1970
//	via  hops of a bridge              b   body: n nil, e empty, 64 base64, gz gzip, claim in a store
//	k    key, base64                   kn  the key is nil, whatever the broker shows
//	h    headers, in order: [name] where the broker holds the value, else [name, type, value]
//	p    properties by name            br  what the broker of origin said
//
// Types are z bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 dec str str64 bin ts arr
// tbl. A name that is not UTF-8 is {"b64": …}.
//
// The package knows no broker: which headers fit where is decided by each
// transport.
package envelope
