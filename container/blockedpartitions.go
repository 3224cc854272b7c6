package container

import (
	"fmt"

	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
)

// headsShown bounds what Stats lists.
const headsShown = 100

// heads asks the transport which partitions are held back. A partition that stands
// still is named in the reason, though the container is ready: its other ones go on.
func (r *engine) heads(st *Stats) {
	r.mu.Lock()
	g := r.sub.gen
	down := r.axes.Sub != state.Open || r.axes.Stop >= state.Closing
	r.mu.Unlock()
	if down {
		return
	}
	hr, ok := g.c.(transport.HeadReporter)
	if !ok {
		return
	}
	all := hr.BlockedPartitions()
	st.BlockedPartitions = all[:min(len(all), headsShown)]
	for i := range all {
		st.Oldest = max(st.Oldest, r.now().Sub(all[i].Since))
	}
	if !st.Ready || st.Reason != "" {
		return
	}
	full, first := 0, -1
	for i := range all {
		if all[i].Full() {
			if full++; first < 0 {
				first = i
			}
		}
	}
	if full == 0 {
		return
	}
	h := all[first]
	st.Reason = fmt.Sprintf("partition %d of %s stands still: offset %d is not done for %v", h.Partition, h.Topic, h.Position, round(r.now().Sub(h.Since)))
	if full > 1 {
		st.Reason += fmt.Sprintf(", and %d more", full-1)
	}
}
