package share

// links are a member's ways to the brokers, one for each that leads a partition. The member's
// lock guards them.
type links struct {
	at     map[int32]*link // by broker
	opened uint64          // sessions so far, which numbers them
}

// open numbers a new session of a link.
func (ls *links) open(l *link) {
	ls.opened++
	l.session.reset()
	l.session.id = ls.opened
}

// wake makes the link with a session look for something to send.
func (ls *links) wake(session uint64) {
	if l := ls.of(session); l != nil {
		l.wake()
	}
}

// settled wakes the link whose session a verdict waits for, unless that link has a timer for
// the verdicts before it.
func (ls *links) settled(session uint64) {
	if l := ls.of(session); l != nil && l.since.IsZero() {
		l.wake()
	}
}

func (ls *links) wakeAll() {
	for _, l := range ls.at {
		l.wake()
	}
}

func (ls *links) of(session uint64) *link {
	for _, l := range ls.at {
		if l.session.id == session {
			return l
		}
	}
	return nil
}

// fetching reports whether a fetch is on its way.
func (ls *links) fetching() bool {
	for _, l := range ls.at {
		if l.fetching > 0 {
			return true
		}
	}
	return false
}

// room is how many records a link may ask for now. The links that lead partitions share what
// the caller wants; a fetch on its way has had its share.
func (ls *links) room(l *link, wanted int, lay *layout) int {
	if wanted == 0 || !lay.leads(l.node) {
		return 0
	}
	left, idle := wanted, 0
	for _, x := range ls.at {
		left -= x.fetching
		if x.fetching == 0 && (x == l || lay.leads(x.node)) {
			idle++
		}
	}
	if left <= 0 {
		return 0
	}
	return min((left+idle-1)/idle, mostRecords)
}
