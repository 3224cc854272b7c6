package faultproxy_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long a test waits for what must happen.
const limit = 5 * time.Second

// echoServer answers every byte with itself and records what it received.
type echoServer struct {
	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	got      bytes.Buffer
	ended    chan error // how each connection ended
}

func newEchoServer(t *testing.T) *echoServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &echoServer{listener: listener, ended: make(chan error, 16)}
	s.wg.Go(s.accept)
	t.Cleanup(func() { _ = listener.Close(); s.wg.Wait() })
	return s
}

func (s *echoServer) addr() string { return s.listener.Addr().String() }

func (s *echoServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.wg.Go(func() { s.echo(conn) })
	}
}

func (s *echoServer) echo(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		s.mu.Lock()
		s.got.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			s.ended <- err
			return
		}
		if _, err := conn.Write(buf[:n]); err != nil {
			s.ended <- err
			return
		}
	}
}

func (s *echoServer) received() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.got.Bytes())
}

func (s *echoServer) awaitEnd(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(limit):
		t.Fatal("the server's connection did not end")
		return nil
	}
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// say sends text and requires its echo.
func say(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	send(t, conn, []byte(text))
	got := make([]byte, len(text))
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("echo of %q: got %q, %v", text, got, err)
	}
}

func send(t *testing.T, conn net.Conn, data []byte) {
	t.Helper()
	if _, err := conn.Write(data); err != nil {
		t.Fatal(err)
	}
}

// silent requires that nothing arrives for a while.
func silent(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if n != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("expected silence, got %d bytes, %v", n, err)
	}
}

// readEnd returns how conn ends.
func readEnd(t *testing.T, conn net.Conn) error {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	_, err := io.Copy(io.Discard, conn)
	if err == nil {
		return io.EOF
	}
	return err
}

func TestForwardsBothWaysAndThePeersEnd(t *testing.T) {
	server := newEchoServer(t)
	proxy := faultproxy.New(t, server.addr())
	conn := dial(t, proxy.Addr())
	say(t, conn, "hello")
	if proxy.Live() != 1 || proxy.Accepted() != 1 {
		t.Fatalf("live %d, accepted %d; want 1, 1", proxy.Live(), proxy.Accepted())
	}
	_ = conn.Close()
	if err := server.awaitEnd(t); !errors.Is(err, io.EOF) {
		t.Fatalf("server saw %v, want EOF", err)
	}
}

func TestCutIsAFinOnBothSides(t *testing.T) {
	server := newEchoServer(t)
	proxy := faultproxy.New(t, server.addr())
	conn := dial(t, proxy.Addr())
	say(t, conn, "hello")
	if n := proxy.CutAll(); n != 1 {
		t.Fatalf("cut %d connections, want 1", n)
	}
	if err := readEnd(t, conn); !errors.Is(err, io.EOF) {
		t.Fatalf("client saw %v, want EOF", err)
	}
	if err := server.awaitEnd(t); !errors.Is(err, io.EOF) {
		t.Fatalf("server saw %v, want EOF", err)
	}
	if proxy.Live() != 0 {
		t.Fatalf("live %d after the cut", proxy.Live())
	}
	say(t, dial(t, proxy.Addr()), "a new connection is healthy")
}

func TestResetIsARstOnBothSides(t *testing.T) {
	server := newEchoServer(t)
	proxy := faultproxy.New(t, server.addr())
	conn := dial(t, proxy.Addr())
	say(t, conn, "hello")
	proxy.ResetAll()
	if err := readEnd(t, conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("client saw %v, want a reset", err)
	}
	if err := server.awaitEnd(t); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("server saw %v, want a reset", err)
	}
}

func TestBlackHoleHoldsBytesAndTheEnd(t *testing.T) {
	server := newEchoServer(t)
	proxy := faultproxy.New(t, server.addr())
	conn := dial(t, proxy.Addr())
	say(t, conn, "before")
	proxy.BlackHole(true)
	proxy.BlackHole(true) // no second hole
	send(t, conn, []byte("inside"))
	silent(t, conn)
	late := dial(t, proxy.Addr()) // connects, hears nothing
	send(t, late, []byte("late"))
	silent(t, late)
	if got := string(server.received()); got != "before" {
		t.Fatalf("server received %q through the black hole", got)
	}
	proxy.BlackHole(false)
	got := make([]byte, len("inside"))
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "inside" {
		t.Fatalf("after the black hole: %q, %v", got, err)
	}
}

func TestCloseDuringABlackHoleEndsEverything(t *testing.T) {
	server := newEchoServer(t)
	proxy := faultproxy.New(t, server.addr())
	conn := dial(t, proxy.Addr())
	say(t, conn, "before")
	proxy.BlackHole(true)
	send(t, conn, []byte("inside"))
	proxy.Close()
	proxy.Close()
	if err := readEnd(t, conn); err == nil {
		t.Fatal("the connection outlived the proxy")
	}
	if err := proxy.Listen(); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("Listen after Close: %v, want net.ErrClosed", err)
	}
}

func TestLatencyDelaysEachDirection(t *testing.T) {
	server := newEchoServer(t)
	proxy := faultproxy.New(t, server.addr())
	conn := dial(t, proxy.Addr())
	say(t, conn, "fast")
	const latency = 60 * time.Millisecond
	proxy.Latency(latency)
	began := time.Now()
	say(t, conn, "slow")
	if took := time.Since(began); took < 2*latency {
		t.Fatalf("round trip took %v, want at least %v", took, 2*latency)
	}
	proxy.Latency(0)
	say(t, conn, "fast again")
}

func TestRefuseThenSamePortAgain(t *testing.T) {
	server := newEchoServer(t)
	proxy := faultproxy.New(t, server.addr())
	conn := dial(t, proxy.Addr())
	say(t, conn, "hello")
	proxy.Refuse()
	proxy.Refuse()
	if _, err := net.DialTimeout("tcp", proxy.Addr(), limit); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial while refusing: %v", err)
	}
	say(t, conn, "live ones go on")
	for range 2 {
		if err := proxy.Listen(); err != nil {
			t.Fatal(err)
		}
	}
	say(t, dial(t, proxy.Addr()), "back")
}

func TestTargetDownLooksLikeAReset(t *testing.T) {
	server := newEchoServer(t)
	addr := server.addr()
	_ = server.listener.Close()
	proxy := faultproxy.New(t, addr)
	conn, err := net.DialTimeout("tcp", proxy.Addr(), limit)
	if err == nil { // the reset may come as early as the dial
		defer func() { _ = conn.Close() }()
		err = readEnd(t, conn)
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("client saw %v, want a reset", err)
	}
}

func TestLargeTransfersAreUnharmed(t *testing.T) {
	server := newEchoServer(t)
	proxy := faultproxy.New(t, server.addr())
	proxy.Latency(time.Millisecond)
	conn := dial(t, proxy.Addr())
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	var writer sync.WaitGroup
	writer.Go(func() {
		if _, err := conn.Write(sent); err != nil {
			t.Error(err)
		}
	})
	got := make([]byte, len(sent))
	if err := conn.SetReadDeadline(time.Now().Add(4 * limit)); err != nil {
		t.Fatal(err)
	}
	_, err := io.ReadFull(conn, got)
	writer.Wait()
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("the echo differs: %v", err)
	}
}

func TestCutAfterSoManyBytes(t *testing.T) {
	server := newEchoServer(t)
	proxy := faultproxy.New(t, server.addr())
	for _, n := range []int{0, 3, 5} {
		for _, fromServer := range []bool{true, false} {
			proxy.CutAfter(faultproxy.ByteCut{N: n, FromServer: fromServer, Connections: 1})
			conn := dial(t, proxy.Addr())
			_, _ = conn.Write([]byte("hello")) // at 0 the end may be there already
			if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(conn)
			if len(got) > n || fromServer && string(got) != "hello"[:n] {
				t.Errorf("cut after %d bytes, the server's %t: got %q", n, fromServer, got)
			}
			_ = conn.Close()
			_ = server.awaitEnd(t)
		}
	}
	if n := proxy.ByteCuts(); n != 6 {
		t.Errorf("%d cuts", n)
	}
	say(t, dial(t, proxy.Addr()), "later connections are healthy")
}
