package bridge

// action is what becomes of one message.
type action uint8

const (
	forward     action = iota // publish it to the target
	rename                    // publish it under a new identity: it carries another message's headers
	drop                      // acknowledge it: it came from the target
	skip                      // acknowledge it: the target has confirmed it before
	parkHops                  // park it: it has passed too many places
	parkExpired               // park it: its time to live is over
	parkBehind                // park it: an earlier message of its key is parked
)

// facts are what the decision depends on.
type facts struct {
	viaTarget bool // its own list of places contains the target
	copied    bool // its list of places, or its identity, belongs to another content
	loops     bool // the ledger knows that it came from the target
	done      bool // the ledger knows that the target has confirmed this very record of a log
	hops      int  // how many places it has passed
	expired   bool // its time to live is over, and its broker does not remove it
	keyParked bool // an earlier message of its key is parked
}

// decide is the whole rule. A message is dropped only if this very content came from the
// target: a token alone would drop new messages whose producer copies headers.
func (f facts) decide() action {
	switch {
	case f.viaTarget, f.loops:
		return drop
	case f.done:
		return skip
	case f.hops >= maxHops:
		return parkHops
	case f.expired:
		return parkExpired
	case f.keyParked:
		return parkBehind
	case f.copied:
		return rename
	}
	return forward
}
