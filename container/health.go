package container

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// partsShown is how many stuck partitions a reason names.
const partsShown = 3

// stuckParts names the partitions whose handlers are stuck, and for how long: the
// container works, and some of its log does not move. Empty where there are none. The
// caller holds mu.
func (r *engine) stuckParts() string {
	if r.sub.gen == nil || !r.sub.gen.caps.Partitions {
		return ""
	}
	ages := map[int32]time.Duration{}
	now := r.now()
	for _, w := range r.pool.workers {
		d := w.d
		if len(w.batch) > 0 {
			d = w.batch[0].d
		}
		if started := w.busy.Load(); w.stuck && started != 0 && d != nil {
			p := d.Origin.Partition
			ages[p] = max(ages[p], now.Sub(time.Unix(0, started)))
		}
	}
	if len(ages) == 0 {
		return ""
	}
	var parts []int32
	for p := range ages {
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b int32) int { return int(ages[b] - ages[a]) })
	var b strings.Builder
	for i, p := range parts {
		if i == partsShown {
			fmt.Fprintf(&b, " and %d more", len(parts)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "partition %d stuck for %v", p, round(ages[p]))
	}
	return b.String()
}
