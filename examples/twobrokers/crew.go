package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
)

const members = 2

// crew are the processes that consume.
type crew struct {
	program string
	place   place
	running [members]*worker
	killed  int
}

type worker struct {
	cmd   *exec.Cmd
	input io.Closer
}

// hire starts a consumer and waits until it is ready.
func (c *crew) hire(ctx context.Context, i int) error {
	text, err := c.place.text()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, c.program) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), envPlace+"="+text, fmt.Sprint(envInstance, "=", i))
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.running[i] = &worker{cmd: cmd, input: in}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("a consumer did not start: %w", err)
	}
	return nil
}

// killAlong kills one after the other, spread over the work.
func (c *crew) killAlong(ctx context.Context, s *shop, n size) error {
	for k := range n.kills {
		if err := s.wait(ctx, n.ids*(k+1)/(n.kills+1)); err != nil {
			return err
		}
		i := rand.IntN(members) //nolint:gosec // no secret
		c.running[i].kill()
		c.killed++
		if err := c.hire(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// dismiss lets all go when nothing is left for them.
func (c *crew) dismiss() error {
	var errs []error
	for i, w := range c.running {
		errs = append(errs, w.input.Close())
		defer func() { c.running[i] = nil }()
	}
	for _, w := range c.running {
		errs = append(errs, w.cmd.Wait())
	}
	return errors.Join(errs...)
}

func (c *crew) end() {
	for _, w := range c.running {
		if w != nil {
			w.kill()
		}
	}
}

// kill sends SIGKILL. That the process was there to receive it is all that matters.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}
