// Command changelog groups the entries of CHANGELOG.md's [Unreleased] by area, and with a tag
// makes them that version's section:
//
//	go run ./tools/changelog            # group [Unreleased]
//	go run ./tools/changelog v0.1.0     # and release it
//
// No entry is changed or lost. Land all entries first.
package main
