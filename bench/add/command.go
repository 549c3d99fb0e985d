//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// commandTime bounds one command.
const commandTime = 5 * time.Minute

// cost is what a command took.
type cost struct {
	measure.Cost       // CPU with that of all that it started
	peak         int64 // bytes of the largest of its processes
}

// command is a program that is run as a person does, in a home that is not theirs.
type command struct {
	home string
	dir  string // current; default home
	env  []string
	code int // with which it ends
	args []string
}

// run runs a command to its end. What was written before is on the disk when it
// starts: who waits for the disk does not wait for what another wrote.
func (b *bench) run(c command) (cost, error) {
	if err := syncDisk(b.dir); err != nil {
		return cost{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	// A shell is between: the peak that the kernel tells of a child is at least that
	// of who started it.
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `"$@"; exit $?`, "sh"}, c.args...)...)
	cmd.Env = append([]string{"HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + filepath.Join(b.dir, "tmp")}, c.env...)
	cmd.Dir = c.dir
	if c.dir == "" {
		cmd.Dir = c.home
	}
	var said bytes.Buffer
	cmd.Stderr, cmd.Stdout = &said, &said
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != c.code {
		return cost{}, fmt.Errorf("%s: ended with %v, not with %d: %.2000s", c.args, err, c.code, said.Bytes()[max(0, said.Len()-2000):])
	}
	s := cmd.ProcessState
	return cost{measure.Cost{Wall: wall, CPU: s.UserTime() + s.SystemTime()}, s.SysUsage().(*syscall.Rusage).Maxrss << 10}, nil
}

// syncDisk waits until all of the file system of a directory is on the disk.
func syncDisk(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
}
