package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
	"github.com/twmb/franz-go/pkg/kfake"
)

// serveVariable names the server that this process is to be.
const serveVariable = "LONGSHORE_BENCH_SERVE"

// embedded are the servers that run in processes of their own, so that their time
// and memory are not the client's. Each returns its address.
func embedded(name string) (addr string, closeIt func(), err error) {
	switch name {
	case "sqstest":
		s, err := sqstest.Start(sqstest.Config{CallLog: -1})
		if err != nil {
			return "", nil, err
		}
		return s.URL, func() { _ = s.Close() }, nil
	case "amqptest":
		s, err := amqptest.Start(amqptest.Config{})
		if err != nil {
			return "", nil, err
		}
		return s.URL, func() { _ = s.Close() }, nil
	case "kfake":
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return "", nil, err
		}
		return c.ListenAddrs()[0], c.Close, nil
	}
	return "", nil, fmt.Errorf("no server is called %q", name)
}

// serve is the server that the parent asked for; false if this process is none.
func serve() bool {
	name := os.Getenv(serveVariable)
	if name == "" {
		return false
	}
	addr, closeIt, err := embedded(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	fmt.Println(addr)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // its end is ours
	closeIt()
	return true
}

// startServer runs this program once more as a server.
func startServer(name string) (addr string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveVariable+"="+name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("%s did not start: %w", name, err)
	}
	return strings.TrimSpace(line), stop, nil
}
