package soak

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// crew is a producer and three consumers.
type crew struct {
	t       testing.TB
	plan    plan
	members []*member
	killed  map[role]int
}

type member struct {
	role role
	cmd  *exec.Cmd
}

const consumers = 3

func newCrew(t testing.TB, p plan) *crew {
	t.Helper()
	c := &crew{t: t, plan: p, killed: map[role]int{}}
	t.Cleanup(func() {
		for _, m := range c.members {
			_ = m.cmd.Process.Kill()
			_ = m.cmd.Wait()
		}
	})
	return c
}

func (c *crew) hire(r role) {
	c.t.Helper()
	p := c.plan
	p.Role = r
	cmd := exec.CommandContext(c.t.Context(), os.Args[0], "-test.run=^$") //nolint:gosec // this program
	cmd.Env = append(os.Environ(), p.environment())
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // its end is ours
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.members = append(c.members, &member{role: r, cmd: cmd})
}

// killOne ends a process in the middle of whatever it does and starts another.
func (c *crew) killOne() {
	c.t.Helper()
	i := rand.IntN(len(c.members)) //nolint:gosec // no secret
	m := c.members[i]
	if err := m.cmd.Process.Kill(); err != nil {
		c.t.Fatalf("a %s was dead before it was killed: %v", m.role, err)
	}
	var end *exec.ExitError
	if err := m.cmd.Wait(); !errors.As(err, &end) || end.Exited() {
		c.t.Fatalf("a %s ended by itself: %v", m.role, err)
	}
	c.members = append(c.members[:i], c.members[i+1:]...)
	c.killed[m.role]++
	c.hire(m.role)
}

// dismiss asks all of a role to stop, and waits for it.
func (c *crew) dismiss(r role) {
	c.t.Helper()
	var rest, going []*member
	for _, m := range c.members {
		if m.role != r {
			rest = append(rest, m)
			continue
		}
		going = append(going, m)
		if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			c.t.Error(err)
		}
	}
	for _, m := range going {
		err := m.cmd.Wait()
		if s, ok := m.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGTERM {
			continue // it had only just been born, and heard the signal before it listened
		}
		if err != nil {
			c.t.Errorf("a %s stopped with %v", r, err)
		}
	}
	c.members = rest
}
