package clientimport

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/secrets"
)

const cursorFile = `{
  "mcpServers": {
    "paid": {"url": "https://paid.example.com/mcp", "headers": {"Authorization": "Bearer s3cr3t"}},
    "fs": {"command": "fs"},
    "broken": {"note": "neither"}
  }
}
`

// setup is a user with one client.
type setup struct {
	t       *testing.T
	dir     string
	secrets *secrets.Store
}

func newSetup(t *testing.T) *setup {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return &setup{t, dir, secrets.New(filepath.Join(dir, "secrets"))}
}

func (s *setup) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *setup) read(name string) string {
	b, _ := os.ReadFile(filepath.Join(s.dir, name))
	return string(b)
}

func (s *setup) open(file string) *Importer {
	s.t.Helper()
	c, err := clientconfig.Lookup("cursor")
	if err != nil {
		s.t.Fatal(err)
	}
	im, err := Open(Options{Target: clientconfig.Target{Client: c, File: filepath.Join(s.dir, file)}, ServersFile: filepath.Join(s.dir, "servers.yaml"),
		RecordDir: filepath.Join(s.dir, "imports"), Secrets: s.secrets})
	if err != nil {
		s.t.Fatal(err)
	}
	return im
}

func (s *setup) planImport(file string, keep bool) *Plan {
	s.t.Helper()
	p, err := s.open(file).PlanImport(Selection{Entry: clientconfig.Entry{Name: "loadout", Command: "/bin/loadout", Args: []string{"mcp"}}, KeepFile: keep})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *setup) planUndo(file string) *Plan {
	s.t.Helper()
	p, err := s.open(file).PlanUndo()
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *setup) apply(p *Plan) {
	s.t.Helper()
	if err := p.Apply(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *setup) secretNames() (names []string) {
	all, err := s.secrets.List()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}

// states returns the state of each server by its name in the client.
func states(p *Plan) map[string]string {
	out := map[string]string{}
	for _, s := range p.Servers {
		out[s.Name] = s.State
	}
	return out
}

func TestImportAndUndo(t *testing.T) {
	s := newSetup(t)
	s.write("mcp.json", cursorFile)
	p := s.planImport("mcp.json", false)
	if diff := cmp.Diff(map[string]string{"paid": Added, "fs": Added, "broken": Skipped}, states(p)); diff != "" || p.Action != Import {
		t.Errorf("%s %s", p.Action, diff)
	}
	if strings.Contains(p.Diff, "s3cr3t") || p.Diff == "" {
		t.Errorf("diff %s", p.Diff)
	}
	if s.read("mcp.json") != cursorFile || s.read("servers.yaml") != "" || len(s.secretNames()) > 0 {
		t.Error("a plan wrote something")
	}
	s.apply(p)
	if got := p.ChangedServers(); !slices.Equal(got, []string{"fs", "paid"}) {
		t.Errorf("changed %q", got)
	}
	if s.read(filepath.Base(p.Backup)) != cursorFile || strings.Contains(s.read("mcp.json"), "s3cr3t") || !strings.Contains(s.read("servers.yaml"), "${{secrets.PAID_AUTHORIZATION}}") {
		t.Errorf("after the import:\n%s\n%s", s.read("mcp.json"), s.read("servers.yaml"))
	}
	if again := s.planImport("mcp.json", false); again.Action != None {
		t.Errorf("again: %+v", again)
	}
	undo := s.planUndo("mcp.json")
	if diff := cmp.Diff(map[string]string{"paid": Removed, "fs": Removed}, states(undo)); diff != "" || undo.Action != Undo {
		t.Errorf("%s %s", undo.Action, diff)
	}
	if len(undo.Notes) != 1 || !strings.Contains(undo.Notes[0], "will be deleted") {
		t.Errorf("notes %q", undo.Notes)
	}
	s.apply(undo)
	if s.read("mcp.json") != cursorFile || s.read(filepath.Base(p.Backup)) != "" || len(s.secretNames()) > 0 || strings.Contains(s.read("servers.yaml"), "paid") {
		t.Errorf("after the undo: %q\n%s\n%s", s.secretNames(), s.read("mcp.json"), s.read("servers.yaml"))
	}
	if p := s.planUndo("mcp.json"); p.Action != None || len(p.Servers) > 0 {
		t.Errorf("undone again: %+v", p)
	}
}

// Several imports are undone together.
func TestUndoSeveralImports(t *testing.T) {
	s := newSetup(t)
	s.write("mcp.json", cursorFile)
	s.apply(s.planImport("mcp.json", false))
	s.write("mcp.json", strings.Replace(s.read("mcp.json"), `"broken": {"note": "neither"}`, `"later": {"command": "later"}`, 1))
	s.apply(s.planImport("mcp.json", false))
	undo := s.planUndo("mcp.json")
	if diff := cmp.Diff(map[string]string{"paid": Removed, "fs": Removed, "later": Removed}, states(undo)); diff != "" {
		t.Error(diff)
	}
	s.apply(undo)
	for _, name := range []string{`"paid"`, `"fs"`, `"later"`} {
		if !strings.Contains(s.read("mcp.json"), name) {
			t.Errorf("%s not restored:\n%s", name, s.read("mcp.json"))
		}
	}
}

// An undo works without the backup of the import.
func TestUndoWithoutBackup(t *testing.T) {
	s := newSetup(t)
	s.write("mcp.json", cursorFile)
	p := s.planImport("mcp.json", false)
	s.apply(p)
	if err := os.Remove(p.Backup); err != nil {
		t.Fatal(err)
	}
	undo := s.planUndo("mcp.json")
	if strings.Contains(strings.Join(undo.Notes, "\n"), "the backup") {
		t.Errorf("notes %q on a backup that was deleted", undo.Notes)
	}
	s.apply(undo)
	if s.read("mcp.json") != cursorFile {
		t.Errorf("after the undo:\n%s", s.read("mcp.json"))
	}
}

// An undo keeps entries that the user changed since, entries that another client uses,
// and the backups if an entry cannot be restored.
func TestUndoKeepsChanges(t *testing.T) {
	s := newSetup(t)
	s.write("mcp.json", cursorFile)
	s.write("other.json", `{"mcpServers": {"fs": {"command": "fs"}}}`)
	first := s.planImport("mcp.json", false)
	s.apply(first)
	if p := s.planImport("other.json", false); states(p)["fs"] != Present {
		t.Errorf("other: %v", p.Servers)
	} else {
		s.apply(p)
	}
	s.write("servers.yaml", strings.Replace(s.read("servers.yaml"), "https://paid.example.com", "https://new.example.com", 1))
	s.write("mcp.json", `{"mcpServers": {"fs": {"command": "new"}}}`)
	undo := s.planUndo("mcp.json")
	if diff := cmp.Diff(map[string]string{"paid": Kept, "fs": Kept}, states(undo)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(strings.Join(undo.Notes, "\n"), "is kept, because not everything can be restored") {
		t.Errorf("notes %q", undo.Notes)
	}
	s.apply(undo)
	if s.read(filepath.Base(first.Backup)) != cursorFile || !slices.Equal(s.secretNames(), []string{"PAID_AUTHORIZATION"}) || !strings.Contains(s.read("mcp.json"), `"new"`) {
		t.Errorf("%q\n%s", s.secretNames(), s.read("mcp.json"))
	}
}

func TestImportKeepsFile(t *testing.T) {
	s := newSetup(t)
	s.write("mcp.json", cursorFile)
	p := s.planImport("mcp.json", true)
	if p.Backup != "" || p.Diff != "" || !slices.Contains(p.Notes, "Cursor still starts these servers itself") {
		t.Errorf("%+v", p)
	}
	s.apply(p)
	if s.read("mcp.json") != cursorFile {
		t.Error("the client's file changed")
	}
	s.apply(s.planUndo("mcp.json"))
	if s.read("mcp.json") != cursorFile || strings.Contains(s.read("servers.yaml"), "fs") {
		t.Errorf("after the undo:\n%s", s.read("servers.yaml"))
	}
}

// A secret of the user with the same name and another value is not replaced.
func TestImportKeepsSecrets(t *testing.T) {
	s := newSetup(t)
	if err := s.secrets.Set(t.Context(), "PAID_AUTHORIZATION", "mine"); err != nil {
		t.Fatal(err)
	}
	s.write("mcp.json", cursorFile)
	s.apply(s.planImport("mcp.json", false))
	if v, err := s.secrets.Get("PAID_AUTHORIZATION"); err != nil || v != "mine" {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := s.secrets.Get("PAID_AUTHORIZATION_2"); err != nil || v != "s3cr3t" {
		t.Errorf("%q, %v", v, err)
	}
}

func TestErrorsNameTheEntry(t *testing.T) {
	s := newSetup(t)
	s.write("mcp.json", cursorFile)
	im := s.open("mcp.json")
	if _, err := im.PlanImport(Selection{AllProjects: true}); err == nil || err.(*Error).Part != Projects {
		t.Errorf("%v", err)
	}
	s.write("servers.yaml", "{")
	c, _ := clientconfig.Lookup("cursor")
	o := Options{Target: clientconfig.Target{Client: c, File: filepath.Join(s.dir, "mcp.json")}, ServersFile: filepath.Join(s.dir, "servers.yaml"), RecordDir: s.dir, Secrets: s.secrets}
	if _, err := Open(o); err == nil || err.(*Error).Part != ServersFile {
		t.Errorf("%v", err)
	}
	s.write("mcp.json", "{")
	if _, err := Open(o); err == nil || err.(*Error).Part != ClientFile {
		t.Errorf("%v", err)
	}
}
