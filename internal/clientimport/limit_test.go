//go:build unix

package clientimport

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/limittest"
)

// tryOpen is like open, but returns the error.
func (s *setup) tryOpen(file string) (*Importer, error) {
	c, err := clientconfig.Lookup("cursor")
	if err != nil {
		return nil, err
	}
	return Open(Options{Target: clientconfig.Target{Client: c, File: filepath.Join(s.dir, file)}, ServersFile: filepath.Join(s.dir, "servers.yaml"),
		RecordDir: filepath.Join(s.dir, "imports"), Secrets: s.secrets})
}

// Whichever step fails, an import and its undo report it. They are complete when they
// succeed later.
func TestStepsThatFail(t *testing.T) {
	for name, each := range map[string]func(t *testing.T, f func(context.Context) error){
		"cancelled": func(t *testing.T, f func(context.Context) error) { limittest.CancelAtEach(t, f) },
		"too many open files": func(t *testing.T, f func(context.Context) error) {
			limittest.EachOpen(t, func() error { return f(t.Context()) }, func(error) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			s.write("mcp.json", cursorFile)
			s.write("servers.yaml", "mcpServers:\n  own: {command: own}\n")
			each(t, func(ctx context.Context) error {
				im, err := s.tryOpen("mcp.json")
				if err != nil {
					return err
				}
				p, err := im.PlanImport(Selection{Entry: clientconfig.Entry{Name: "loadout", Command: "/bin/loadout", Args: []string{"mcp"}}})
				if err != nil {
					return err
				}
				return p.Apply(ctx)
			})
			if got := s.read("servers.yaml"); !strings.Contains(got, "${{secrets.PAID_AUTHORIZATION}}") || !strings.Contains(got, "own") || strings.Contains(s.read("mcp.json"), "s3cr3t") || len(s.secretNames()) != 1 {
				t.Errorf("imported:\n%s\n%s", got, s.read("mcp.json"))
			}
			each(t, func(ctx context.Context) error {
				im, err := s.tryOpen("mcp.json")
				if err != nil {
					return err
				}
				p, err := im.PlanUndo()
				if err != nil {
					return err
				}
				return p.Apply(ctx)
			})
			if s.read("mcp.json") != cursorFile || len(s.secretNames()) > 0 || strings.Contains(s.read("servers.yaml"), "paid") || !strings.Contains(s.read("servers.yaml"), "own") {
				t.Errorf("undone: %q\n%s\n%s", s.secretNames(), s.read("mcp.json"), s.read("servers.yaml"))
			}
		})
	}
}

// A damaged file is an error that names its part, and stays as it is.
func TestDamagedFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		file, text string
		part       Part
	}{
		"client":  {"mcp.json", "{", ClientFile},
		"servers": {"servers.yaml", "mcpServers: [", ServersFile},
	} {
		s := newSetup(t)
		s.write("mcp.json", cursorFile)
		s.write(tt.file, tt.text)
		_, err := s.tryOpen("mcp.json")
		if e, ok := errors.AsType[*Error](err); !ok || e.Part != tt.part || e.Error() == "" {
			t.Errorf("%s: %v", name, err)
		}
		if s.read(tt.file) != tt.text {
			t.Errorf("%s: the file was changed", name)
		}
	}
	s := newSetup(t)
	s.write("mcp.json", cursorFile)
	s.apply(s.planImport("mcp.json", false))
	records, err := filepath.Glob(filepath.Join(s.dir, "imports", "*.json"))
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	for _, text := range []string{"{", "[]", "{}"} {
		if err := os.WriteFile(records[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.tryOpen("mcp.json")
		if e, ok := errors.AsType[*Error](err); !ok || e.Part != Record {
			t.Errorf("a record %q: %v", text, err)
		}
	}
}

// A servers file that changes after the plan is not overwritten.
func TestServersFileChangesAfterPlan(t *testing.T) {
	s := newSetup(t)
	s.write("mcp.json", cursorFile)
	p := s.planImport("mcp.json", false)
	const text = "mcpServers:\n  other: {command: other}\n"
	s.write("servers.yaml", text)
	err := p.Apply(t.Context())
	if err == nil || !strings.Contains(err.Error(), "changed since it was read") || s.read("servers.yaml") != text || s.read("mcp.json") != cursorFile {
		t.Errorf("applied with %v:\n%s", err, s.read("servers.yaml"))
	}
}
