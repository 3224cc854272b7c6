package share

import "testing"

// The links share what the caller wants, and together never ask for much more.
func TestLinksShareWhatIsWanted(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted   int
		leaders  []int32 // of the partitions
		fetching []int   // by broker; the first is the one that asks
		want     int
	}{
		"all of it":                    {10, []int32{0}, []int{0}, 10},
		"nothing is wanted":            {0, []int32{0}, []int{0}, 0},
		"it leads nothing":             {10, []int32{1}, []int{0, 0}, 0},
		"half":                         {10, []int32{0, 1}, []int{0, 0}, 5},
		"rounded up":                   {10, []int32{0, 1, 2}, []int{0, 0, 0}, 4},
		"another has half":             {10, []int32{0, 1}, []int{0, 5}, 5},
		"another has all":              {10, []int32{0, 1}, []int{0, 10}, 0},
		"another leads nothing":        {10, []int32{0}, []int{0, 0}, 10},
		"more than one fetch may take": {10 * mostRecords, []int32{0}, []int{0}, mostRecords},
	} {
		lay := newLayout()
		for num, node := range tc.leaders {
			part := Part{Num: int32(num)} //nolint:gosec // small
			lay.assigned[part] = struct{}{}
			lay.leaders[part] = node
		}
		ls := links{at: map[int32]*link{}}
		for node, n := range tc.fetching {
			l := newLink(int32(node), "billing", "a") //nolint:gosec // small
			l.fetching = n
			ls.at[l.node] = l
		}
		if got := ls.room(ls.at[0], tc.wanted, &lay); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
