//go:build unix

package operator_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/operator"
)

// newFile writes the administrator's file below a root of its own.
func newFile(t *testing.T) (f operator.File, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the file must belong to root")
	}
	f = operator.File{Root: t.TempDir()}
	path = f.Path()
	for _, dir := range []string{f.Root, filepath.Dir(path)} {
		try(t, os.MkdirAll(dir, 0o755))
		try(t, os.Chmod(dir, 0o755))
	}
	try(t, os.WriteFile(path, []byte("policy: {presence: managed}\n"), 0o644))
	return f, path
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadChecksWhoCouldWrite(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, path string)
		want   string // part of the error; "" means that the file counts
	}{
		{"of root", func(*testing.T, string) {}, ""},
		{"readable by root only", func(t *testing.T, p string) { try(t, os.Chmod(p, 0o600)) }, ""},
		{"writable by a group", func(t *testing.T, p string) { try(t, os.Chmod(p, 0o664)) }, "writable by others (mode 0664)"},
		{"writable by everybody", func(t *testing.T, p string) { try(t, os.Chmod(p, 0o646)) }, "writable by others"},
		{"of another user", func(t *testing.T, p string) { try(t, os.Chown(p, 1234, 0)) }, "not owned by root"},
		{"in a directory of another user", func(t *testing.T, p string) { try(t, os.Chown(filepath.Dir(p), 1234, 0)) }, "not owned by root"},
		{"in a writable directory", func(t *testing.T, p string) { try(t, os.Chmod(filepath.Dir(p), 0o777)) }, "writable by others"},
		{"below a writable directory", func(t *testing.T, p string) { try(t, os.Chmod(filepath.Dir(filepath.Dir(p)), 0o1777)) }, "writable by others"},
		{"a symlink", func(t *testing.T, p string) {
			try(t, os.Rename(p, p+".own"))
			try(t, os.Symlink(p+".own", p))
		}, "symbolic link"},
		{"below a symlink", func(t *testing.T, p string) {
			dir := filepath.Dir(p)
			try(t, os.Rename(dir, dir+".own"))
			try(t, os.Symlink(dir+".own", dir))
		}, "symbolic link"},
		{"a directory", func(t *testing.T, p string) {
			try(t, os.Remove(p))
			try(t, os.Mkdir(p, 0o755))
		}, "not a regular file"},
		{"below a file", func(t *testing.T, p string) {
			dir := filepath.Dir(p)
			try(t, os.Rename(dir, dir+".own"))
			try(t, os.WriteFile(dir, nil, 0o644))
		}, "cannot be trusted: not a directory"},
		{"as large as permitted", func(t *testing.T, p string) { try(t, os.Truncate(p, 1<<20)) }, ""},
		{"a byte too large", func(t *testing.T, p string) { try(t, os.Truncate(p, 1<<20+1)) }, "too large (limit 1048576 bytes)"},
		{"too large", func(t *testing.T, p string) { try(t, os.Truncate(p, 2<<20)) }, "too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, path := newFile(t)
			tt.change(t, path)
			data, err := f.Read()
			switch {
			case tt.want == "" && (err != nil || !strings.Contains(string(data), "managed")):
				t.Errorf("read %q, %v", data, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || data != nil):
				t.Errorf("read %.100q, error %v, want %q", data, err, tt.want)
			}
		})
	}
}

func TestReadMissing(t *testing.T) {
	f, path := newFile(t)
	try(t, os.Remove(path))
	if _, err := f.Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	try(t, os.Remove(filepath.Dir(path)))
	if _, err := f.Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
}

func TestSafePath(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the directories must belong to root")
	}
	own := t.TempDir() // below a directory that everybody can write
	link := filepath.Join(own, "link")
	try(t, os.Symlink("/usr/bin", link))
	for _, tt := range []struct{ path, want string }{
		{"", ""},
		{"/usr/bin", "/usr/bin"},
		{own + ":/usr/bin:/usr/bin/missing:bin:.:", "/usr/bin"},
		{link, "/usr/bin"},
	} {
		if got := operator.SafePath(tt.path); got != tt.want {
			t.Errorf("SafePath(%q) = %q, want %q", tt.path, got, tt.want)
		}
	}
}
