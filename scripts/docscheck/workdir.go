package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// prefix begins the folders of docscheck; the dot keeps them out of ./... .
const prefix = ".docscheck-"

// workdir makes the folder for the code of one run. It is inside the module, so that the
// code can import its packages. Its name holds the process id: a run that was killed cannot
// remove its folder, so the next run does, and must not touch that of a run still going on.
func workdir(root string) (string, error) {
	left, err := filepath.Glob(filepath.Join(root, prefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && n > 0 && alive(n) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(root, fmt.Sprintf("%s%d-", prefix, os.Getpid()))
}

// alive reports whether a process exists: signal 0 is not delivered, only checked.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}
