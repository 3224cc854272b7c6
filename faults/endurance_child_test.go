package faults

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// readmeProcess is the README's program while it runs. All that is known of it is what
// it writes: a line for each order from its handler, one for each garbage collection
// (GODEBUG=gctrace=1, which needs no word in the program), and its report at the end.
type readmeProcess struct {
	t       *testing.T
	cmd     *exec.Cmd
	reading sync.WaitGroup

	mu      sync.Mutex
	calls   []uint8 // of the handler, by number
	sent    int     // that the handler is to see
	done    int     // seen at least once
	most    int     // of those that waited or were in work at once
	again   int     // lines with another attempt than the first
	since   time.Time
	still   time.Duration // the longest time without a line while something waited
	heap    [2]heapSpan   // live heap in MB, in the first and the second half
	unread  []string      // the last lines that are none of these
	unknown int
}

// heapSpan is the smallest and the largest that was seen.
type heapSpan struct{ least, most int }

func (h *heapSpan) note(mb int) {
	if h.most == 0 || mb < h.least {
		h.least = mb
	}
	h.most = max(h.most, mb)
}

func (h heapSpan) String() string { return fmt.Sprintf("%d–%d", h.least, h.most) }

var (
	orderLine = regexp.MustCompile(`order (\d+), attempt (\d+)$`)
	gcLine    = regexp.MustCompile(`\d+->\d+->(\d+) MB, \d+ MB goal`)
)

func startReadme(t *testing.T, path string, n int) *readmeProcess {
	t.Helper()
	p := &readmeProcess{t: t, cmd: exec.Command(path), calls: make([]uint8, n), since: time.Now()} //nolint:gosec // built by this test
	p.cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1", "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x")
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.reading.Go(func() {
		lines := bufio.NewScanner(out)
		for lines.Buffer(nil, 1<<20); lines.Scan(); {
			p.read(lines.Bytes())
		}
	})
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil { // the test has failed
			_ = p.cmd.Process.Kill()
			p.reading.Wait()
			_ = p.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("it wrote %d lines beside orders and collections, at last:\n%s", p.unknown, strings.Join(p.unread, "\n"))
		}
	})
	return p
}

func (p *readmeProcess) read(line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := orderLine.FindSubmatch(line); m != nil {
		if n, err := strconv.Atoi(string(m[1])); err == nil && n < len(p.calls) {
			p.handled(n, !bytes.Equal(m[2], []byte("1")), time.Now())
			return
		}
	}
	if m := gcLine.FindSubmatch(line); m != nil {
		half := min(1, 2*p.done/len(p.calls))
		if mb, err := strconv.Atoi(string(m[1])); err == nil && p.done > 0 {
			p.heap[half].note(mb)
		}
		return
	}
	if bytes.HasPrefix(line, []byte("gc ")) || bytes.HasSuffix(line, []byte(" P")) || len(line) == 0 {
		return // torn by a line of the handler
	}
	p.unknown++
	p.unread = append(p.unread[max(0, len(p.unread)-29):], string(line))
}

func (p *readmeProcess) handled(n int, again bool, now time.Time) {
	p.still = max(p.still, p.waited(now))
	p.since = now
	if again {
		p.again++
	}
	if p.calls[n] == 0 {
		p.done++
	}
	if p.calls[n] < 255 {
		p.calls[n]++
	}
}

// waited is how long nothing came although something was there to be handled.
func (p *readmeProcess) waited(now time.Time) time.Duration {
	if p.done >= p.sent {
		return 0
	}
	return now.Sub(p.since)
}

// published notes that so many more orders are at the broker.
func (p *readmeProcess) published(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done >= p.sent {
		p.since = time.Now() // it stood still because there was nothing
	}
	p.sent += n
	p.most = max(p.most, p.sent-p.done)
}

// progress returns what is not handled, and for how long nothing was.
func (p *readmeProcess) progress() (left int, waited time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent - p.done, p.waited(time.Now())
}

func (p *readmeProcess) handledSoFar() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// peak is the largest resident size that the system has seen, in MB; 0 without /proc.
func (p *readmeProcess) peak() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(status))
	i := slices.Index(fields, "VmHWM:")
	if i < 0 || i+1 >= len(fields) {
		return 0
	}
	kb, _ := strconv.Atoi(fields[i+1])
	return kb / 1024
}

// stop is a deployment's SIGTERM: the program drains, reports and exits with 0.
func (p *readmeProcess) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	p.reading.Wait()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the program ended with %v", err)
	}
}
