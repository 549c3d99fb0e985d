package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// The path that a client starts must survive an upgrade, so it is the one that
// the user typed or that PATH has, not the target of its symlinks.
func TestTypedCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs need an extension")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	self := filepath.Join(dir, "Cellar", "loadout", "1.0", "loadout")
	link := filepath.Join(dir, "bin", "loadout")
	other := filepath.Join(dir, "other", "loadout")
	for _, file := range []string{self, link, other} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(self, []byte("#!/bin/sh\n"), 0o755), os.WriteFile(other, []byte("#!/bin/sh\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, link); err != nil {
		t.Skip(err)
	}
	for _, tt := range []struct{ path, typed, want string }{
		{filepath.Dir(link), "loadout", link},
		{filepath.Dir(other), "loadout", self}, // PATH has another one
		{dir, "loadout", self},
		{dir, link, link},
		{dir, "bin/loadout", link},
		{dir, "./Cellar/loadout/1.0/loadout", self},
		{dir, other, self},
		{dir, "", self},
	} {
		t.Setenv("PATH", tt.path)
		if got := typedCommand(tt.typed, self); got != tt.want {
			t.Errorf("%q with PATH %s: got %s, want %s", tt.typed, tt.path, got, tt.want)
		}
	}
}

func TestSetupNotes(t *testing.T) {
	if n := setupNotes("windows"); len(n) != 1 {
		t.Errorf("on Windows: %v", n)
	}
	if n := setupNotes("linux"); len(n) != 0 {
		t.Errorf("on Linux: %v", n)
	}
}
