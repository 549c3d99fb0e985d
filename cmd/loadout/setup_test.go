package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientconfig"
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

// If a file changes between the plan and its application, setup plans again: it is
// content if another setup connected the client, and writes over other changes only
// with --yes.
func TestSetupPlansChangedFilesAgain(t *testing.T) {
	entry := clientconfig.Entry{Name: clientconfig.DefaultName, Command: "/usr/bin/loadout", Args: []string{"mcp"}}
	const other = `{"mcpServers": {"other": {"command": "x"}}}`
	for _, tt := range []struct {
		name          string
		review, twice bool // twice: another setup connects the client
		applied       bool
		err           error
	}{
		{"two setups", false, true, false, nil},
		{"two setups with review", true, true, false, nil},
		{"another program", false, false, true, nil},
		{"another program with review", true, false, false, clientconfig.ErrChanged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "mcp.json")
			cursor, _ := clientconfig.Lookup("cursor")
			plan := func() (*clientconfig.Change, error) {
				return clientconfig.PlanMissing(clientconfig.Target{Client: cursor, File: file}, entry)
			}
			change, err := plan()
			if err != nil {
				t.Fatal(err)
			}
			if tt.twice {
				first, err := plan()
				if err := errors.Join(err, first.Apply()); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(file, []byte(other), 0o600); err != nil {
				t.Fatal(err)
			}
			p := clientPlan{client: cursor, change: change, planAgain: plan}
			if applied := p.apply(tt.review); applied != tt.applied || !errors.Is(p.err, tt.err) {
				t.Errorf("applied: %v, error %v", applied, p.err)
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(b); strings.Contains(text, "/usr/bin/loadout") != (tt.err == nil) || strings.Contains(text, "other") == tt.twice {
				t.Errorf("the file has %s", text)
			}
		})
	}
}

// With --yes, setup prints the change that it makes, also if a file changed after
// the plan was printed.
func TestSetupPrintsChangeOfChangedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	cursor, _ := clientconfig.Lookup("cursor")
	plan := func() (*clientconfig.Change, error) {
		entry := clientconfig.Entry{Name: clientconfig.DefaultName, Command: "/usr/bin/loadout", Args: []string{"mcp"}}
		return clientconfig.PlanMissing(clientconfig.Target{Client: cursor, File: file}, entry)
	}
	change, err := plan()
	if err := errors.Join(err, os.WriteFile(file, []byte(`{"mcpServers": {"other": {"command": "x"}}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	s := &clientSetup{app: newApp(environment{stdout: &out, getenv: func(string) string { return "" }, caller: testCaller}), args: []string{"setup"}, verb: "connect",
		plans: []clientPlan{{client: cursor, change: change, planAgain: plan}}}
	if err := s.run(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(out.String(), file+" changed meanwhile, so its change is now:\n")
	if !ok || !strings.Contains(after, "--- "+file+"\n") || !strings.Contains(after, `"loadout": {`) || !strings.Contains(after, "Done: connected Cursor.") {
		t.Errorf("printed %s", out.String())
	}
}
