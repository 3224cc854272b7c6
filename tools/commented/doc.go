// Package commented finds struct fields without a comment. State that several goroutines
// share is understood by its fields, so each field of the engine and of the drivers says
// why it exists.
//
//	missing, err := commented.Fields("container")
package commented
