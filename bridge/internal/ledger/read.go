package ledger

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// magic begins each segment; its last byte is the version of the format.
const magic = "longshore-ledger\x00\x00\x00\x01"

// Torn is what one segment lost at its end: the bytes after the last whole record.
type Torn struct {
	Segment string
	Bytes   int64
}

// Read returns every whole record of the directory, segment by segment in the order in which
// they were begun. It may run while a bridge writes: it sees what had been written when it
// opened each segment. A second value that is not nil ends the sequence.
func Read(dir string, torn func(Torn)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		names, err := segments(dir)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for _, name := range names {
			more, err := readSegment(name, torn, func(r Record) bool { return yield(r, nil) })
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

func segments(dir string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.ledger"))
	if err != nil {
		return nil, fmt.Errorf("list the ledger %s: %w", dir, err)
	}
	slices.Sort(names) // their names begin with the time
	return names, nil
}

// readSegment passes each whole record to each, and returns whether to go on with the next
// segment.
func readSegment(name string, torn func(Torn), each func(Record) bool) (bool, error) {
	f, err := os.Open(name) //nolint:gosec // a name that segments found in the ledger's directory
	if err != nil {
		return false, fmt.Errorf("read the ledger: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading
	r := bufio.NewReaderSize(f, 1<<20)
	first := make([]byte, len(magic))
	switch _, err := io.ReadFull(r, first); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true, nil // killed before the first write
	case err != nil:
		return false, fmt.Errorf("read the ledger %s: %w", name, err)
	case string(first) != magic:
		return false, fmt.Errorf("%s is not a ledger that this version can read", name)
	}
	for {
		b, err := r.Peek(head + maxID + 4)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("read the ledger %s: %w", name, err)
		}
		if len(b) == 0 {
			return true, nil
		}
		rec, n := parse(b)
		if n == 0 {
			rest, err := io.Copy(io.Discard, r)
			if torn != nil {
				torn(Torn{Segment: name, Bytes: rest})
			}
			return true, err
		}
		if _, err := r.Discard(n); err != nil {
			return false, fmt.Errorf("read the ledger %s: %w", name, err)
		}
		if !each(rec) {
			return false, nil
		}
	}
}

// Size is how many bytes the segments of a directory have. It grows with each record.
func Size(dir string) (sum int64, err error) {
	names, err := segments(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		f, err := os.Stat(name)
		if err != nil {
			return 0, fmt.Errorf("look at the ledger: %w", err)
		}
		sum += f.Size()
	}
	return sum, nil
}
