package clientconfig_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

// Entries are replaced by one and restored: byte for byte if nothing else changed,
// otherwise by value.
func TestImportAndUndo(t *testing.T) {
	for _, tt := range []struct {
		client, text, edited string
		names                []string
	}{
		{"cursor", `{
  // mine
  "theme": "dark",
  "mcpServers": {
    "a": {"command": "x", "env": {"TOKEN": "s3cr3t"}, "n": 1.50, "on": true, "none": null, "l": [1, {"b": []}]}, // first
    "b.c": {
      "url": "https://example.com/mcp",
    },
    "keep": {"command": "k"}
  }
}
`, `"theme": "dark"`, []string{"a", "b.c"}},
		{"codex", `# mine
model = "x"

[mcp_servers.a]
command = "x"
args = ["a", 'b\c']
startup_timeout_sec = 20
enabled = true

[mcp_servers.a.env]
TOKEN = "s3cr3t"
"odd key" = "v"

[mcp_servers.keep]
command = "k"
`, `model = "x"`, []string{"a"}},
	} {
		t.Run(tt.client, func(t *testing.T) {
			c, err := clientconfig.Lookup(tt.client)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "config")
			write(t, file, []byte(tt.text))
			target := clientconfig.Target{Client: c, File: file}
			e := clientconfig.Entry{Command: "/bin/loadout", Args: []string{"mcp"}}
			before := servers(t, target)
			importEntry := func() {
				t.Helper()
				ch, err := clientconfig.PlanImport(target, tt.names, nil, e)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(ch.Diff(), "s3cr3t") || ch.Diff() == "" {
					t.Errorf("the diff is\n%s", ch.Diff())
				}
				if err := ch.Apply(); err != nil {
					t.Fatal(err)
				}
				if b, err := os.ReadFile(ch.Backup); err != nil || string(b) != tt.text {
					t.Errorf("the backup holds %q %v", b, err)
				}
			}
			importEntry()
			now := servers(t, target)
			if len(now.ByName) != 2 || now.ByName["keep"] == nil || !now.HasEntry(c, e) || !strings.Contains(string(now.Data), "mine") {
				t.Errorf("it is\n%s", now.Data)
			}
			if ch, err := clientconfig.PlanImport(target, nil, nil, e); err != nil || ch.Action != clientconfig.None {
				t.Errorf("again it is %v %v", ch, err)
			}
			undo := func() *clientconfig.Change {
				t.Helper()
				ch, err := clientconfig.PlanUndoImports(target, []clientconfig.Import{{Original: []byte(tt.text), Names: tt.names, Entry: e}})
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(ch.Diff(), "s3cr3t") {
					t.Errorf("the diff is\n%s", ch.Diff())
				}
				if err := ch.Apply(); err != nil {
					t.Fatal(err)
				}
				return ch
			}
			undo()
			if got := string(servers(t, target).Data); got != tt.text {
				t.Errorf("it came back as\n%s", got)
			}
			// with an edit in between
			importEntry()
			write(t, file, []byte(strings.Replace(string(servers(t, target).Data), tt.edited, strings.Replace(tt.edited, "mine", "yours", 1)+strings.Repeat(" ", 3), 1)))
			undo()
			back := servers(t, target)
			if got, want := names(back), names(before); !slices.Equal(got, want) {
				t.Errorf("it has %q, want %q:\n%s", got, want, back.Data)
			}
			if ch, err := clientconfig.PlanUndoImports(target, []clientconfig.Import{{Original: []byte(tt.text), Names: tt.names, Entry: e}}); err != nil || ch.Action != clientconfig.None || len(ch.Notes) > 0 {
				t.Errorf("undone again it is %+v %v", ch, err)
			}
			// an entry that was added again stays
			second, err := clientconfig.PlanImport(target, tt.names, nil, e)
			if err != nil {
				t.Fatal(err)
			}
			if err := second.Apply(); err != nil {
				t.Fatal(err)
			}
			other, err := clientconfig.Plan(target, clientconfig.Entry{Name: tt.names[0], Command: "new"})
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Apply(); err != nil {
				t.Fatal(err)
			}
			if ch := undo(); len(ch.Notes) == 0 || !strings.Contains(string(servers(t, target).Data), "new") {
				t.Errorf("%v\n%s", ch.Notes, servers(t, target).Data)
			}
		})
	}
}

func servers(t *testing.T, target clientconfig.Target) *clientconfig.Servers {
	t.Helper()
	s, err := clientconfig.Read(target)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(s *clientconfig.Servers) []string {
	var out []string
	for name := range s.ByName {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Several imports are undone by one change, whether the file was edited since
// or not.
func TestUndoSeveralImports(t *testing.T) {
	const first = "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}\n  }\n}\n"
	for _, edit := range []bool{false, true} {
		target := clientconfig.Target{Client: lookup(t, "cursor"), File: filepath.Join(t.TempDir(), "mcp.json")}
		write(t, target.File, []byte(first))
		var done []clientconfig.Import
		importEntry := func(name string) {
			t.Helper()
			a := clientconfig.Import{Original: servers(t, target).Data, Names: []string{name}, Entry: entry}
			ch, err := clientconfig.PlanImport(target, a.Names, nil, entry)
			if err != nil {
				t.Fatal(err)
			}
			if err := ch.Apply(); err != nil {
				t.Fatal(err)
			}
			done = append(done, a)
		}
		importEntry("a")
		add, err := clientconfig.Plan(target, clientconfig.Entry{Name: "b", Command: "b"})
		if err != nil {
			t.Fatal(err)
		}
		if err := add.Apply(); err != nil {
			t.Fatal(err)
		}
		importEntry("b")
		if edit {
			write(t, target.File, append(servers(t, target).Data, '\n'))
		}
		ch, err := clientconfig.PlanUndoImports(target, done)
		if err != nil || len(ch.Notes) > 0 || ch.Action != clientconfig.Replace {
			t.Fatalf("%+v, %v", ch, err)
		}
		if err := ch.Apply(); err != nil {
			t.Fatal(err)
		}
		if got := names(servers(t, target)); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("edited %v: %q", edit, got)
		}
		if ch, err := clientconfig.PlanUndoImports(target, nil); err != nil || ch.Action != clientconfig.None {
			t.Errorf("nothing to revert: %+v, %v", ch, err)
		}
	}
}

// An import into a file that does not exist creates it, and needs no backup.
func TestImportCreatesFile(t *testing.T) {
	dir := t.TempDir()
	client := lookup(t, "cursor")
	e := clientconfig.Entry{Command: "/bin/loadout", Args: []string{"mcp"}}
	plan := func(file string) *clientconfig.Change {
		t.Helper()
		ch, err := clientconfig.PlanImport(clientconfig.Target{Client: client, File: file}, nil, nil, e)
		if err != nil {
			t.Fatal(err)
		}
		return ch
	}
	file := filepath.Join(dir, "missing.json")
	ch := plan(file)
	if ch.Action != clientconfig.Create || ch.Backup != "" || !strings.HasPrefix(ch.Diff(), "--- /dev/null\n") || len(ch.Notes) != 1 {
		t.Errorf("got %s, backup %q, notes %q, diff\n%s", ch.Action, ch.Backup, ch.Notes, ch.Diff())
	}
	apply(t, ch)
	if s := servers(t, clientconfig.Target{Client: client, File: file}); !s.HasEntry(client, e) {
		t.Errorf("the file has\n%s", s.Data)
	}
	write(t, file, []byte("{}"))
	if ch := plan(file); ch.Action != clientconfig.Replace || ch.Backup == "" || !strings.HasPrefix(ch.Diff(), "--- "+file+"\n") {
		t.Errorf("got %s, backup %q, diff\n%s", ch.Action, ch.Backup, ch.Diff())
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	if ch := plan(link); len(ch.Notes) == 0 || !strings.HasPrefix(ch.Notes[0], link+" is a symlink to ") {
		t.Errorf("notes are %q", ch.Notes)
	}
}
