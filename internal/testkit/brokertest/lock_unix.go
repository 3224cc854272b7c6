//go:build unix

package brokertest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// lock holds the node for t alone, across processes: packages are tested in parallel.
// The kernel gives it back when the process ends, however it ends; a test that
// did not come to its cleanup is told by what it left in the file.
func lock(t testing.TB, node, script string) condition {
	t.Helper()
	dir := filepath.Join(filepath.Dir(filepath.Dir(script)), ".cache", "brokers", node)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "tests.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(file.Truncate(0), file.Close()); err != nil {
			t.Error(err)
		}
	})
	deadline := time.NewTimer(lockTimeout)
	defer deadline.Stop()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return taken(t, file)
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			t.Fatalf("locking %s: %v", file.Name(), err)
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("another test has had the node %s for %v", node, lockTimeout)
		case <-t.Context().Done():
			t.Fatal("the test ended while waiting for the node")
		}
	}
}

// taken marks the locked file as in use and says how the user before left it.
func taken(t testing.TB, file *os.File) condition {
	t.Helper()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 0 {
		return leftBroken
	}
	if _, err := file.WriteString("in use\n"); err != nil {
		t.Fatal(err)
	}
	return inOrder
}
