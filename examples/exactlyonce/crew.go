package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
)

// crew are the processes that consume.
type crew struct {
	program, url, db string
	running          []*exec.Cmd
	killed           int
}

func newCrew(program, url, db string) *crew { return &crew{program: program, url: url, db: db} }

func (c *crew) start(ctx context.Context) error {
	for range consumers {
		if err := c.hire(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hire starts a consumer and waits until it is ready.
func (c *crew) hire(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, c.program) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), envURL+"="+c.url, envDB+"="+c.db)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.running = append(c.running, cmd)
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("a consumer did not start: %w", err)
	}
	return nil
}

// killOne ends a consumer in the middle of whatever it does and hires another.
func (c *crew) killOne(ctx context.Context) error {
	i := rand.IntN(len(c.running)) //nolint:gosec // no secret
	end(c.running[i])
	c.running = append(c.running[:i], c.running[i+1:]...)
	c.killed++
	return c.hire(ctx)
}

func (c *crew) stop() {
	for _, cmd := range c.running {
		end(cmd)
	}
	c.running = nil
}

// end sends SIGKILL. That the process was there to receive it is all that matters.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
