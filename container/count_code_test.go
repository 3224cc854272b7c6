package container

import (
	"fmt"
	"testing"

	"github.com/longshore-go/longshore"
)

// F-L02: what is counted by code has a bounded number of counts, and misses nothing.
func TestCountsByCodeAreBounded(t *testing.T) {
	var counts map[longshore.Code]int64
	for range 2 {
		for i := range 1000 {
			countCode(&counts, longshore.Code(fmt.Sprint("code-", i)))
		}
	}
	sum := int64(0)
	for _, n := range counts {
		sum += n
	}
	if len(counts) != mostCodes+1 || sum != 2000 || counts["code-7"] != 2 || counts[longshore.CodeHandler] != 2*(1000-mostCodes) {
		t.Errorf("%d counts of %d in all: %v", len(counts), sum, counts)
	}
}
