package main

import "github.com/longshore-go/longshore/tools/textedit"

// fault is one that was fixed once, put back by an edit of a line or two: one fix of a commit
// is reverted in the code as it is today.
type fault struct {
	textedit.Edit
	from  string // the commit that fixed it, or the number of a fault found by trials
	layer string // the package whose simulation has to find it
}

// revert is the fault that an edit of a file puts back.
func revert(from, name, file, old, now, layer string) fault {
	return fault{textedit.Edit{Name: name, File: file, Old: old, New: now}, from, layer}
}

const (
	pure  = "./container/internal/dispatch"
	whole = "./container"
)

func faults() []fault {
	const dispatch = "container/internal/dispatch/"
	return []fault{
		revert("a0760a7", "followers of a lost delivery stay", dispatch+"orphans.go",
			"\t\t\tbroken = true\n", "\t\t\tbroken = false\n", pure),
		revert("f4f08d4", "a loss in the middle of a lane lets others past its first one", dispatch+"orphans.go",
			"\tif l.running > 0 {\n\t\tls.occupy(l)\n\t} else {\n\t\tit.lane = nil\n\t}\n", "\tls.occupy(l)\n", pure),
		revert("5351780", "what fails in a batch behind a lost delivery is tried again here", dispatch+"orphans.go",
			"\t\tl.gap = l.gap || l.running > 1\n", "\t\tl.gap = l.gap || l.running > 1000\n", pure),
		revert("1a67ab3", "what waits to be dead-lettered and is lost blocks its key", dispatch+"parking.go",
			"\tfor _, it := range p.due { // they can be due for long\n\t\tif keep(it) {\n\t\t\tdue = append(due, it)\n\t\t}\n\t}\n",
			"\tdue = p.due\n", pure),
		revert("95ac86b", "followers of a lost head start without it", dispatch+"lose.go",
			"\t\ts.lanes.orphanAll(l)\n", "", pure),
		revert("a0760a7", "a lost delivery gives back what came after its loss was noted", dispatch+"orphans.go",
			"\tif it.lane == nil || it.swept {\n", "\tif it.lane == nil {\n", whole),
		revert("f4f08d4", "what a batch puts back loses its order", dispatch+"lane.go",
			"\tif l.mark == nil {\n\t\tit.next, l.head = l.head, it\n\t} else {\n\t\tit.next, l.mark.next = l.mark.next, it\n\t}\n",
			"\tit.next, l.head = l.head, it\n", pure),
		revert("b6411a1", "parked deliveries take places in the window", dispatch+"ledger.go",
			"max(g.Retries().N-g.limits.Retries, 0)", "g.Retries().N", pure),
		revert("3e6bda0", "the bytes' ceiling takes every message for an empty one", dispatch+"ledger.go",
			"int(max(left/max(g.mean, 1), 1))", "int(max(left, 1))", pure),
		revert("8f76d35", "a redelivery passes for a follower of its lost delivery", "container/receiver.go",
			"\tif again && ", "\tif again && false && ", whole),
		revert("8f76d35", "room next to a lane that hangs is left unused", "container/blockedlanes.go",
			"\tm.hand.wakeOne() // a lane that was set aside has made room, and every worker may be idle\n", "", whole),
		revert("71fee108", "a pause or resume that failed is not repeated", "container/supervisor.go",
			"\t\treturn flowUnknown\n", "\t\treturn result\n", whole),
		revert("fault 2", "a source is opened and takes messages while work may not start", "container/subscribe.go",
			"opts.Base, opts.Window, opts.Workers, opts.Paused = v.base, g.window.n, g.workers.n, g.flow == flowBornPaused",
			"opts.Base, opts.Window, opts.Workers, opts.Paused = v.base, g.window.n, g.workers.n, false", whole),
		revert("fault 5", "a partition that leaves starts deliveries", "container/withdraw.go",
			"\t\tc.returnSoon(c.takeLeaving(g, goes))\n\t})\n}\n\n// takeLeft", "\t})\n}\n\n// takeLeft", whole),
		revert("fault 6", "a stop waits for what only waits", "container/drain.go",
			"\treturn d.intake.by == noReceiver && !d.hand.startable() && !d.hand.mayReceive()\n", "\treturn d.held.sched.Total().N == 0\n", whole),
		revert("fault 38", "followers of a blocked lane take the places of the others", dispatch+"ledger.go",
			"\treturn g.held[Ready].N + g.held[Running].N + g.held[Taken].N + g.behind[Open].N\n",
			"\treturn g.held[Ready].N + g.held[Running].N + g.held[Taken].N + g.held[Behind].N\n", pure),
	}
}
