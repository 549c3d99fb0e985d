//go:build unix

// Package privatefiletest tests that programs reject files that another user
// could have written. It is for packages that store files with package
// privatefile.
package privatefiletest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/loadout-dev/loadout/internal/privatefile"
)

// Tamper maps the names of modifications to functions that apply them to a
// path. Each makes the path unsafe: another user could have written it, or it
// has the wrong type.
var Tamper = map[string]func(t *testing.T, path string){
	"writable by the group": func(t *testing.T, p string) { chmod(t, p, 0o020) },
	"writable by others":    func(t *testing.T, p string) { chmod(t, p, 0o002) },
	"owned by another user": chown,
	"symbolic link":         link,
	"pipe":                  func(t *testing.T, p string) { try(t, os.RemoveAll(p)); try(t, syscall.Mkfifo(p, 0o600)) },
	"dangling link":         func(t *testing.T, p string) { try(t, os.RemoveAll(p)); try(t, os.Symlink("nowhere", p)) },
	"other type":            swapType,
}

// WantUnsafe fails the test unless err is a [*privatefile.UnsafeError] about
// path. operation names the call that returned err.
func WantUnsafe(t *testing.T, operation string, err error, path string) {
	t.Helper()
	if u, ok := errors.AsType[*privatefile.UnsafeError](err); !ok || u.Path != path {
		t.Errorf("%s: %v, want an error that %s cannot be trusted", operation, err, path)
	}
}

func chmod(t *testing.T, path string, more os.FileMode) {
	info, err := os.Stat(path)
	try(t, err)
	try(t, os.Chmod(path, info.Mode().Perm()|more))
}

func chown(t *testing.T, path string) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner")
	}
	try(t, os.Chown(path, 12345, -1))
}

func link(t *testing.T, path string) {
	try(t, os.Rename(path, path+".real"))
	try(t, os.Symlink(filepath.Base(path)+".real", path))
}

// swapType replaces a file with a directory, or a directory with a file.
func swapType(t *testing.T, path string) {
	info, err := os.Stat(path)
	try(t, err)
	try(t, os.RemoveAll(path))
	if info.IsDir() {
		try(t, os.WriteFile(path, nil, 0o600))
	} else {
		try(t, os.Mkdir(path, 0o700))
	}
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
