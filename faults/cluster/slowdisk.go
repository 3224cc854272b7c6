//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// slowSync is what each fsync of a broker on a slow disk takes.
const slowSync = 300 * time.Millisecond

// slowDisk delays a broker's fsync and fdatasync, by a tracer that is attached to its process.
func (n *nodes) slowDisk(ctx context.Context, one *node) error {
	pid, err := one.process(ctx)
	if err != nil {
		return err
	}
	calls := "fsync,fdatasync"
	tracer := exec.CommandContext(context.WithoutCancel(ctx), "strace", "-f", "-qq", "-o", os.DevNull, "-p", pid, //nolint:gosec // a pid
		"-e", "trace="+calls, "-e", fmt.Sprintf("inject=%s:delay_enter=%d", calls, slowSync.Microseconds()))
	tracer.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us; we end it
	if err := tracer.Start(); err != nil {
		return err
	}
	n.undo(func() error {
		err := tracer.Process.Signal(os.Interrupt) // it lets go of the broker
		_ = tracer.Wait()                          // "signal: interrupt" is what was wanted
		return err
	})
	return nil
}

// process is the broker's own process, the one in its namespace that runs a virtual machine.
func (o *node) process(ctx context.Context) (pid string, err error) {
	out, err := exec.CommandContext(ctx, "ip", "netns", "pids", o.space).Output() //nolint:gosec // a namespace of ours
	if err != nil {
		return "", fmt.Errorf("the processes of %s: %w", o.name, err)
	}
	for _, pid := range strings.Fields(string(out)) {
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		if comm := strings.TrimSpace(string(name)); comm == "beam.smp" || comm == "java" {
			return pid, nil
		}
	}
	return "", fmt.Errorf("%s has no process in the namespace %s", o.name, o.space)
}
