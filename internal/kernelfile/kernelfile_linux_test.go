package kernelfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loadout-dev/loadout/internal/kernelfile"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	for _, size := range []int{0, 1, 511, 1023, 1024, 1025, 100_000, 4 << 20} {
		want := bytes.Repeat([]byte{'x'}, size)
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := kernelfile.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d bytes, %v", size, len(got), err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "file"), 4<<20+1); err != nil {
		t.Fatal(err)
	}
	if _, err := kernelfile.ReadFile(filepath.Join(dir, "file")); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a file that is too large: %v", err)
	}
	status, err := kernelfile.ReadFile("/proc/self/status")
	if err != nil || !bytes.HasPrefix(status, []byte("Name:")) || !bytes.HasSuffix(status, []byte("\n")) {
		t.Errorf("a file of the kernel: %q, %v", status, err)
	}
	if _, err := kernelfile.ReadFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := kernelfile.ReadFile(dir); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a directory: %v", err)
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := kernelfile.WriteFile(path, "1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := kernelfile.WriteFile(path, "value"); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "value" {
		t.Errorf("wrote %q, %v", got, err)
	}
	if err := kernelfile.WriteFile("/proc/self/comm", "a name"); err != nil {
		t.Error(err)
	}
	if err := kernelfile.WriteFile("/dev/full", "value"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full device: %v", err)
	}
}
