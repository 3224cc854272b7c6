package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Remembered is how many messages a ledger recognises when they come back. One
// entry takes about 80 bytes.
const Remembered = 1 << 19

// Ledger is an open ledger: what this process appends, and an index of the messages that were
// taken last. All methods are safe for concurrent use.
type Ledger struct {
	dir string
	now func() time.Time

	mu      sync.Mutex
	seq     uint64
	index   index
	parked  map[lane]bool // the keys of each way behind which messages are parked
	buf     []byte        // appended and not yet written
	spare   []byte        // the buffer that the writer used last
	batch   *batch        // whose records are in buf
	closed  bool
	failing bool          // the last write has failed
	wake    chan struct{} // tells the writer that buf is not empty
	quit    chan struct{} // closed by Close
	stopped chan struct{} // closed when the writer has ended
	file    File          // used by the writer alone, like size
	size    int64         // of what was written whole
}

// File is a segment that is written.
type File interface {
	io.WriteCloser
	Truncate(size int64) error
	Sync() error
}

// Through has the segment written through another file, as one of a disk that is full. For
// tests, before the first Add.
func (l *Ledger) Through(wrap func(File) File) { l.file = wrap(l.file) }

// batch is what is written with one call. err is read after done is closed.
type batch struct {
	done chan struct{}
	err  error
}

// Open reads what earlier processes wrote, and begins a segment of its own in the directory,
// which it makes if there is none.
func Open(dir string, now func() time.Time) (*Ledger, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make the ledger's directory: %w", err)
	}
	l := &Ledger{dir: dir, now: now, index: newIndex(Remembered), parked: map[lane]bool{},
		wake: make(chan struct{}, 1), quit: make(chan struct{}), stopped: make(chan struct{}), batch: &batch{done: make(chan struct{})}}
	for r, err := range Read(dir, nil) {
		if err != nil {
			return nil, err
		}
		l.note(&r)
	}
	name := filepath.Join(dir, fmt.Sprintf("%020d-%d.ledger", now().UnixNano(), os.Getpid()))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o640) //nolint:gosec // a name of our own in the user's directory
	if err != nil {
		return nil, fmt.Errorf("begin a ledger segment: %w", err)
	}
	if _, err := f.WriteString(magic); err != nil {
		return nil, errors.Join(fmt.Errorf("begin a ledger segment: %w", err), f.Close())
	}
	l.file, l.size = f, int64(len(magic))
	go l.write()
	return l, nil
}

// note takes a record into the index. The caller holds mu, or is Open.
func (l *Ledger) note(r *Record) {
	switch r.Kind {
	case Taken, Confirmed, Returned: // taken: its copy may come back before its confirmation does
		l.index.put(r)
	case Parked:
		if r.Key != 0 {
			l.parked[laneOf(r)] = true
		}
	case Released:
		delete(l.parked, laneOf(r))
	case Looped:
	}
}

// Ask tells what is known of a message by its identity, content and places.
func (l *Ledger) Ask(r Record) Known {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.index.ask(&r)
}

// KeyParked tells whether an earlier message of the record's key, on the same way, is parked.
func (l *Ledger) KeyParked(r Record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return r.Key != 0 && l.parked[laneOf(&r)]
}

// Add appends a record, gives it its number and time, and returns when it has been written.
// With an error nothing of it may be relied on: the message must not be settled. The records of
// several callers are written together.
func (l *Ledger) Add(ctx context.Context, r Record) error {
	p, err := l.Begin(r)
	if err != nil {
		return err
	}
	return p.Wait(ctx)
}

// Pending is a record that is on its way to the file.
type Pending struct {
	l *Ledger
	r Record
	b *batch
}

// Begin appends a record and does not wait for it: later records come after it in the file.
// Where the last write has failed it does wait, so that no more is begun than was on its way.
func (l *Ledger) Begin(r Record) (Pending, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return Pending{}, os.ErrClosed
	}
	l.seq++
	r.Seq, r.At, r.ID = l.seq, l.now().UnixNano(), ShortID(r.ID)
	l.buf = r.append(l.buf)
	if r.Kind == Taken { // its copy may come back at once
		l.note(&r)
	}
	p, failing := Pending{l: l, r: r, b: l.batch}, l.failing
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	if failing {
		<-p.b.done
		return p, p.b.err
	}
	return p, nil
}

// Wait returns when the record has been written, or the reason why it has not.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.b.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if p.b.err != nil {
		return p.b.err
	}
	if p.r.Kind != Taken {
		p.l.mu.Lock()
		p.l.note(&p.r)
		p.l.mu.Unlock()
	}
	return nil
}

// write writes what callers append until the ledger is closed.
func (l *Ledger) write() {
	defer close(l.stopped)
	for {
		select {
		case <-l.wake:
			l.writeBatch()
		case <-l.quit:
			l.writeBatch()
			return
		}
	}
}

func (l *Ledger) writeBatch() {
	l.mu.Lock()
	out, b := l.buf, l.batch
	l.buf, l.spare, l.batch = l.spare[:0], nil, &batch{done: make(chan struct{})}
	l.mu.Unlock()
	if len(out) > 0 {
		b.err = l.append(out)
	}
	l.mu.Lock()
	if len(out) > 0 {
		l.failing = b.err != nil
	}
	l.spare = out
	l.mu.Unlock()
	close(b.done)
}

// append writes whole records. After a write that was cut short, as on a full disk, the part
// that arrived is taken back, so that later records can be read.
func (l *Ledger) append(out []byte) error {
	if _, err := l.file.Write(out); err != nil {
		return errors.Join(fmt.Errorf("write the ledger: %w", err), l.file.Truncate(l.size))
	}
	l.size += int64(len(out))
	return nil
}

// Close writes the records that are still buffered, syncs them to disk and ends the segment.
func (l *Ledger) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	close(l.quit)
	<-l.stopped
	return errors.Join(l.file.Sync(), l.file.Close())
}

// ReleaseKeys records that no key is held back any more.
func (l *Ledger) ReleaseKeys(ctx context.Context) error {
	return l.release(ctx, func(lane) bool { return true })
}

// ReleaseKey records that one key is not held back any more, on whatever way.
func (l *Ledger) ReleaseKey(ctx context.Context, key uint64) error {
	return l.release(ctx, func(k lane) bool { return k.key == key })
}

func (l *Ledger) release(ctx context.Context, which func(lane) bool) error {
	l.mu.Lock()
	keys := slices.Collect(maps.Keys(l.parked))
	l.mu.Unlock()
	for _, k := range keys {
		if !which(k) {
			continue
		}
		if err := l.Add(ctx, Record{Kind: Released, From: k.from, To: k.to, Key: k.key}); err != nil {
			return err
		}
	}
	return nil
}
