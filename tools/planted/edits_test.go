package main

import "testing"

// An edit that no longer fits the code is noticed here, and not by the next `make planted`.
func TestEveryEditFitsOnce(t *testing.T) {
	t.Parallel()
	if n := len(faults()); n < 14 {
		t.Errorf("%d faults, want at least ten reverted fixes, and the faults 2, 5, 6 and 38", n)
	}
	for _, f := range faults() {
		if err := f.Check("../.."); err != nil {
			t.Error(err)
		}
	}
}
