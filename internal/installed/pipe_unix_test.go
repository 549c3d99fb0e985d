//go:build unix

package installed_test

import (
	"syscall"
	"testing"
)

func pipe(t *testing.T, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
}
