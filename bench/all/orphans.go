//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"golang.org/x/sys/unix"
)

// adoptOrphans makes processes whose parents have exited children of this one.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphaned processes: %w", err)
	}
	return nil
}

// endOrphans waits for the processes that the benchmarks left, and kills those that do not exit
// within the given time. It returns an error that names them.
func endOrphans(grace time.Duration) (err error) {
	for end := time.Now().Add(grace); ; time.Sleep(10 * time.Millisecond) {
		left, errList := measure.Children()
		if errList != nil || len(left) == 0 {
			return errors.Join(err, errList)
		}
		for _, pid := range left {
			if exited, _ := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); exited == pid || time.Now().Before(end) {
				continue
			}
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			err = errors.Join(err, fmt.Errorf("a benchmark left process %d (%s), which was killed", pid, strings.TrimSpace(string(name))))
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
	}
}
