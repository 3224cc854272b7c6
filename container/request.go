package container

// request is a number that the transport was last asked to follow. A call that failed may
// have changed nothing, a part, or everything after all (it may even still run), so what the
// transport does is not known then. It is asked again, also for the number that it had before.
type request struct {
	n      int  // what is in force as far as is known
	asked  int  // what was asked for last, also while the call runs and after it has failed
	failed bool // the last call failed
}

// met says whether the transport follows n already.
func (r request) met(n int) bool { return r.n == n && !r.failed }

// answered notes how a call for n has ended. After a failure the number before stands.
func (r *request) answered(n int, err error) {
	if r.failed = err != nil; !r.failed {
		r.n = n
	}
}
