package sqs

import "slices"

// line is a message group of a FIFO queue of which something is held, for a
// container that handles a group's messages one after the other. A receive brings
// up to ten of one group. Only the first of them is handed out; the others wait
// here until it is settled and take no place from other groups.
type line struct {
	head *held
	rest []*held
}

// lines are the groups of an intake. The consumer's mu guards them.
type lines struct {
	byGroup map[string]*line // nil: everything is handed out as it comes
	count   int              // waiting behind heads
	bytes   int              // of their bodies
}

// maxBehind bounds the bodies that wait behind heads; what a poll brings comes on
// top of it.
const maxBehind = 32 << 20

func (ls *lines) full() bool { return ls.bytes >= maxBehind }

// join puts a message at the end of its group and reports whether it is the head.
func (ls *lines) join(h *held) bool {
	if ls.byGroup == nil || h.group == "" {
		return true
	}
	l := ls.byGroup[h.group]
	if l == nil {
		ls.byGroup[h.group] = &line{head: h}
		return true
	}
	l.rest = append(l.rest, h)
	ls.count++
	ls.bytes += len(h.d.Body)
	return false
}

// settled takes the head from its group and returns the next one, nil if there is
// none or h was not the head.
func (ls *lines) settled(h *held) *held {
	l := ls.byGroup[h.group]
	if l == nil || l.head != h {
		return nil
	}
	if len(l.rest) == 0 {
		delete(ls.byGroup, h.group)
		return nil
	}
	l.head, l.rest = l.rest[0], l.rest[1:]
	ls.left(l.head)
	return l.head
}

func (ls *lines) left(hs ...*held) {
	ls.count -= len(hs)
	for _, h := range hs {
		ls.bytes -= len(h.d.Body)
	}
}

// cut takes a message out of its group and returns those that waited behind it.
func (ls *lines) cut(h *held) (behind []*held) {
	l := ls.byGroup[h.group]
	switch {
	case l == nil:
		return nil
	case l.head == h:
		delete(ls.byGroup, h.group)
		ls.left(l.rest...)
		return l.rest
	}
	from := slices.IndexFunc(l.rest, func(f *held) bool { return f.token >= h.token })
	if from < 0 {
		return nil
	}
	behind = slices.Clone(l.rest[from:])
	ls.left(behind...)
	l.rest = l.rest[:from]
	return slices.DeleteFunc(behind, func(f *held) bool { return f == h })
}

// empty takes out all that wait behind heads, group by group in order.
func (ls *lines) empty() (all []*held) {
	for group, l := range ls.byGroup {
		all = append(all, l.rest...)
		l.rest = nil
		if l.head.settled != nil || !l.head.handed {
			delete(ls.byGroup, group)
		}
	}
	ls.count, ls.bytes = 0, 0
	return all
}
