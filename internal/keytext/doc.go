// Package keytext writes message keys for people.
//
//	keytext.Of([]byte("c-91"))             // "c-91"
//	keytext.Of([]byte{0, 1})               // "0x0001"
//	keytext.Names("0x0001", []byte{0, 1})  // true
package keytext
