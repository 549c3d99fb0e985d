//go:build unix

package loadout_test

import (
	"errors"
	"syscall"
	"testing"
)

func makePipe(path string) bool { return syscall.Mkfifo(path, 0o600) == nil }

// A run leaves no child process. TestMain checks for goroutines.
func TestRunLeavesNoFiles(t *testing.T) {
	s := newShop(t, sh(), nil)
	s.says(t, do("(sleep 600 &) ; (setsid sleep 600 &) ; echo done"))
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("unexpected child: %d, %v", pid, err)
	}
}
