// Package registry is a codec for messages whose schema is in a schema registry: a zero
// byte, the schema's id in four bytes, for protobuf the index of the message in its
// file, then the body. A schema that a producer names in the header __value_schema_id, by its
// id or GUID as Confluent's HeaderSchemaIdSerializer does, is read too. It speaks the registry's REST API as Confluent, Redpanda, Karapace
// and Apicurio (at /apis/ccompat/v7) have it, and works on every broker.
//
//	codec, err := registry.New(registry.Config{
//		URLs:   []string{"http://registry:8081"},
//		Codecs: map[registry.Kind]longshore.Codec{registry.Protobuf: protobuf.Codec{}, registry.JSON: longshore.JSON{}},
//	})
//	handler := longshore.Typed(codec, pay)
//
// The codec of the schema's kind reads the rest, and finds the schema by [SchemaOf]:
// what a codec for Avro needs. None is here.
//
// A schema that the registry does not have is the message's own problem: it is rejected.
// A registry that does not answer, or refuses the login, is not: the message is released,
// which is not an attempt, so that an outage fills no dead-letter destination.
package registry
