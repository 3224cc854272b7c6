// Package headertext writes the headers of a message as one line of ASCII text and reads
// them back with their order and types: for transports whose broker cannot hold headers, or
// holds only strings.
//
//	text, err := headertext.Encode(m.Headers)  // value of one header, or a prefix of the body
//	headers, err := headertext.Decode(text)
//
// The text is "1.", four hexadecimal digits of the CRC-32C of what follows the next dot, and
// JSON: {"h":[[name, type, value], …]}. It is what Longshore's own transports put into the
// header longshore-env, so a reader in another language can read both.
package headertext
