package container

import (
	"bytes"
	"runtime"
	"strconv"
)

// runner is the life of a worker: it takes work, else it receives, else it rests.
type runner struct {
	*dispatcher
	recv *receiver
	do   handling
}

// handling runs handlers and carries out what becomes of their deliveries.
type handling interface {
	// process handles what the worker took. It returns with mu held, so that a message
	// costs one lock.
	process(*worker)
	// goexit looks after a worker whose goroutine ended in the middle of a handler.
	goexit(*worker)
}

// run goes on until the worker retires or the run ends.
func (u *runner) run(w *worker) {
	w.gid.Store(goroutineID())
	clean := false
	defer func() {
		if !clean {
			u.do.goexit(w)
		}
	}()
	u.mu.Lock()
	for !w.retire && !u.endWorkers() && !u.pool.surplus() {
		switch {
		case u.next(w):
			u.load.cycles.begins()
			u.wakeOne()
			u.mu.Unlock()
			u.do.process(w) // comes back with mu held
			u.load.cycles.ends(w, u.now)
		case u.mayReceive():
			u.recv.receive(workerReceives)
			w.waited = u.load.cycles.waited
		default:
			u.pool.rest(w)
			u.mu.Unlock()
			<-w.wake
			u.mu.Lock()
			u.pool.woken(w)
		}
	}
	u.leave(w)
	clean = true
	u.mu.Unlock()
}

// goroutineID reads the number under which stack dumps show this goroutine.
func goroutineID() int64 {
	var buf [40]byte
	line := buf[:runtime.Stack(buf[:], false)]
	line = bytes.TrimPrefix(line, []byte("goroutine "))
	if i := bytes.IndexByte(line, ' '); i > 0 {
		n, _ := strconv.ParseInt(string(line[:i]), 10, 64)
		return n
	}
	return 0
}
