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

// commandTimeout is the time limit for one command.
const commandTimeout = 5 * time.Minute

// cost is the time and peak memory that a command used.
type cost struct {
	measure.Cost       // CPU includes child processes
	peak         int64 // in bytes, of the largest process
}

// command is a command line to measure, with its own home directory.
type command struct {
	home string
	dir  string // working directory; "" means home
	env  []string
	code int // expected exit code
	args []string
}

// run runs a command and waits for it to exit. It first syncs the disk, so that the command
// does not wait for earlier writes.
func (b *bench) run(c command) (cost, error) {
	if err := syncDisk(b.dir); err != nil {
		return cost{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	// Start the command through a shell, because the kernel reports at least the parent's
	// memory as a child's peak.
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `"$@"; exit $?`, "sh"}, c.args...)...)
	cmd.Env = append([]string{"HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + filepath.Join(b.dir, "tmp")}, c.env...)
	cmd.Dir = c.dir
	if c.dir == "" {
		cmd.Dir = c.home
	}
	var output bytes.Buffer
	cmd.Stderr, cmd.Stdout = &output, &output
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != c.code {
		return cost{}, fmt.Errorf("run %s: %v, want exit code %d, output %.2000s", c.args, err, c.code, output.Bytes()[max(0, output.Len()-2000):])
	}
	s := cmd.ProcessState
	return cost{measure.Cost{Wall: wall, CPU: s.UserTime() + s.SystemTime()}, s.SysUsage().(*syscall.Rusage).Maxrss << 10}, nil
}

// syncDisk flushes a directory's file system to disk.
func syncDisk(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
}
