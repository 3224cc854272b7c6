//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/testkit/history"
)

const consumers = 3

// crew are the consuming processes.
type crew struct {
	o      options
	h      *history.Writer
	env    []string
	member [consumers]*exec.Cmd
	name   [consumers]string
	starts int // a name is used once: the history tells processes apart by it
}

func newCrew(o options, h *history.Writer, b broker, effects string) *crew {
	return &crew{o: o, h: h, env: append(os.Environ(), addressVariable+"="+b.address(), effectsVariable+"="+effects)}
}

func (c *crew) start(ctx context.Context) error {
	for i := range c.member {
		if err := c.launch(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *crew) launch(ctx context.Context, i int) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	c.starts++
	c.name[i] = fmt.Sprintf("consumer-%d-%d", i, c.starts)
	args := []string{"-on", c.o.on, "-history", c.o.folder, "-consume", c.name[i]}
	if c.o.endure {
		args = append(args, "-endure")
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), exe, args...) //nolint:gosec // this very binary; it ends by signals
	cmd.Env = c.env
	log, err := os.Create(c.o.folder + "/" + c.name[i] + ".log")
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the child has its own
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us; we stop it
	c.member[i] = cmd
	return cmd.Start()
}

// kill crashes a process and starts another in its place.
func (c *crew) kill(ctx context.Context, i int) error {
	c.h.Add(history.Event{Kind: history.Killed, Of: c.name[i]})
	if err := c.member[i].Process.Kill(); err != nil {
		return err
	}
	_ = c.member[i].Wait() // "signal: killed" is what was wanted
	return c.launch(ctx, i)
}

// freeze stops a process until the fault is healed.
func (c *crew) freeze(i int, n *nodes) error {
	n.undo(func() error {
		defer c.h.Add(history.Event{Kind: history.Thawed, Of: c.name[i]})
		return c.member[i].Process.Signal(syscall.SIGCONT)
	})
	c.h.Add(history.Event{Kind: history.Frozen, Of: c.name[i]})
	return c.member[i].Process.Signal(syscall.SIGSTOP)
}

// restart stops the processes one after the other, as a deployment does.
func (c *crew) restart(ctx context.Context) error {
	for i := range c.member {
		if err := c.stop(i); err != nil {
			return err
		}
		if err := c.launch(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *crew) stop(i int) error {
	cmd := c.member[i]
	if cmd == nil {
		return nil
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s has ended by itself, see its log: %w", c.name[i], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		c.member[i] = nil
		if err != nil {
			return fmt.Errorf("%s: %w, see its log", c.name[i], err)
		}
		return nil
	case <-time.After(10 * drainTimeout):
		_ = cmd.Process.Kill() // the checker says that its drain did not end
		<-ended                //nolint:errcheck // it was killed
		c.member[i] = nil
		return nil
	}
}

func (c *crew) stopAll() (failed error) {
	for i := range c.member {
		failed = errors.Join(failed, c.stop(i))
	}
	return failed
}

// end leaves no process behind, however the run ends.
func (c *crew) end() {
	for i, cmd := range c.member {
		if cmd != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			c.member[i] = nil
		}
	}
}

// idle waits until every confirmed message is done, or its time is over: the checker says
// what is missing.
func (c *crew) idle(ctx context.Context, limit time.Duration) error {
	for until := time.Now().Add(limit); time.Now().Before(until); {
		events, err := history.Read(c.o.folder)
		if err != nil {
			return err
		}
		open := map[string]bool{}
		for _, e := range events {
			if e.Kind == history.Confirmed {
				open[e.ID] = true
			}
		}
		for _, e := range events {
			if e.Kind == history.Done {
				delete(open, e.ID)
			}
		}
		if len(open) == 0 {
			return nil
		}
		if err := pause(ctx, 3*time.Second); err != nil {
			return err
		}
	}
	return nil
}
