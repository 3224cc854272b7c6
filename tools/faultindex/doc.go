// Package faultindex knows which test belongs to which requirement of the fault
// suite: the list of faults/requirements.txt, and the ids in the comments of test
// functions ("// F-A01").
//
//	index, err := faultindex.Read(root)
//	for _, test := range index.Tests("F-C01") { … }
package faultindex
