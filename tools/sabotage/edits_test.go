package main

import "testing"

// An edit that no longer fits the code would be noticed by the next run of the
// saboteur only, and that takes half an hour.
func TestEveryEditFitsOnce(t *testing.T) {
	t.Parallel()
	for _, e := range edits() {
		if err := e.Check("../.."); err != nil {
			t.Error(err)
		}
	}
}
