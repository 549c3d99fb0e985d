package clientconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

const withProjects = `{
  "numStartups": 3, // mine
  "mcpServers": {"top": {"command": "t"}},
  "projects": {
    "/home/me/app": {
      "allowedTools": [],
      "mcpServers": {
        "a": {"command": "x", "env": {"TOKEN": "s3cr3t"}},
        "keep": {"command": "k"} /* stays */
      },
      "history": [{"display": "hello"}]
    },
    "/home/me/b": {"mcpServers": {"a": {"type": "http", "url": "https://example.com/s3cr3t"}}},
    "/home/me/none": {"allowedTools": []}
  }
}
`

var entry = clientconfig.Entry{Command: "/bin/loadout", Args: []string{"mcp"}}

func importedTarget(t *testing.T, text string, names []string, local []clientconfig.ProjectEntry) clientconfig.Target {
	t.Helper()
	target := clientconfig.Target{Client: lookup(t, "claude-code"), File: filepath.Join(t.TempDir(), ".claude.json")}
	write(t, target.File, []byte(text))
	ch, err := clientconfig.PlanImport(target, names, local, entry)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(ch.Diff(), "s3cr3t") || ch.Diff() == "" {
		t.Errorf("the diff is\n%s", ch.Diff())
	}
	if err := ch.Apply(); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(ch.Backup); err != nil || fi.Mode().Perm() != 0o600 || read(t, ch.Backup) != text {
		t.Errorf("the backup: %v %v", fi, err)
	}
	return target
}

func returned(t *testing.T, target clientconfig.Target, text string, names []string, local []clientconfig.ProjectEntry) []string {
	t.Helper()
	ch, err := clientconfig.PlanUndoImports(target, []clientconfig.Import{{Original: []byte(text), Names: names, Local: local, Entry: entry}})
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Apply(); err != nil {
		t.Fatal(err)
	}
	return ch.Notes
}

// Only the entries of projects and of the user are removed, and are restored byte for
// byte.
func TestImportFromProjects(t *testing.T) {
	both := []clientconfig.ProjectEntry{{Project: "/home/me/app", Name: "a"}, {Project: "/home/me/b", Name: "a"}}
	for _, tt := range []struct {
		names []string
		local []clientconfig.ProjectEntry
		left  map[string][]string
	}{
		{nil, both[:1], map[string][]string{"/home/me/app": {"keep"}, "/home/me/b": {"a"}, "/home/me/none": nil}},
		{[]string{"top"}, both, map[string][]string{"/home/me/app": {"keep"}, "/home/me/b": nil, "/home/me/none": nil}},
	} {
		target := importedTarget(t, withProjects, tt.names, tt.local)
		s := servers(t, target)
		left := map[string][]string{}
		for dir, m := range s.Projects() {
			left[dir] = names(&clientconfig.Servers{ByName: m})
		}
		if diff := cmp.Diff(tt.left, left); diff != "" || !s.HasEntry(target.Client, entry) {
			t.Errorf("%v: %s\n%s", tt.local, diff, s.Data)
		}
		for _, want := range []string{"// mine", "/* stays */", `"history": [{"display": "hello"}]`} {
			if !strings.Contains(string(s.Data), want) {
				t.Errorf("%s is gone:\n%s", want, s.Data)
			}
		}
		if notes := returned(t, target, withProjects, tt.names, tt.local); len(notes) > 0 {
			t.Errorf("notes %q", notes)
		}
		if got := read(t, target.File); got != withProjects {
			t.Errorf("it came back as\n%s", got)
		}
	}
}

// If the file changed since, entries of projects are restored by value, and the notes
// name those that cannot be restored.
func TestReturnToProjects(t *testing.T) {
	local := []clientconfig.ProjectEntry{{Project: "/home/me/app", Name: "a"}, {Project: "/home/me/b", Name: "a"}}
	original := func(t *testing.T) map[string]map[string]any {
		target := clientconfig.Target{Client: lookup(t, "claude-code"), File: filepath.Join(t.TempDir(), "x")}
		write(t, target.File, []byte(withProjects))
		return servers(t, target).Projects()
	}(t)
	for _, tt := range []struct {
		name, from, to string
		note           string
		back           []string // projects whose servers are as they were
	}{
		{"an edit elsewhere", `"numStartups": 3`, `"numStartups": 4`, "", []string{"/home/me/app", "/home/me/b"}},
		{"a project that is gone", `"/home/me/b": {"mcpServers": {}},`, ``, "no longer in the file", []string{"/home/me/app"}},
		{"an entry that is new", `"mcpServers": {}`, `"mcpServers": {"a": {"command": "new"}}`, "was changed since", []string{"/home/me/app"}},
		{"without a map of servers", `{"mcpServers": {}}`, `{}`, "", []string{"/home/me/app", "/home/me/b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := importedTarget(t, withProjects, nil, local)
			now := read(t, target.File)
			if !strings.Contains(now, tt.from) {
				t.Fatalf("it is\n%s", now)
			}
			write(t, target.File, []byte(strings.Replace(now, tt.from, tt.to, 1)))
			notes := strings.Join(returned(t, target, withProjects, nil, local), "\n")
			if tt.note == "" && notes != "" || !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q", notes)
			}
			s := servers(t, target)
			for _, dir := range tt.back {
				if diff := cmp.Diff(original[dir], s.Projects()[dir]); diff != "" {
					t.Errorf("%s: %s", dir, diff)
				}
			}
			if s.ByName["loadout"] != nil {
				t.Errorf("the entry is there still:\n%s", s.Data)
			}
		})
	}
}

// A file whose projects are in no form that can be edited is left alone; other
// clients have none.
func TestOddProjects(t *testing.T) {
	for _, text := range []string{
		`{"projects": []}`, `{"projects": {"/a": 1}}`, `{"projects": {"/a": {"mcpServers": []}}}`, `{"projects": {}}`, `{}`, ``,
		`{"projects": {"/a": {"mcpServers": {"x": {}}}, "/a": {"mcpServers": {"x": {}}}}}`,
		`{"projects": {"/a": {"mcpServers": {"x": {"command": "1"}, "x": {"command": "2"}}}}}`,
	} {
		target := clientconfig.Target{Client: lookup(t, "claude-code"), File: filepath.Join(t.TempDir(), ".claude.json")}
		write(t, target.File, []byte(text))
		servers(t, target).Projects()
		if ch, err := clientconfig.PlanImport(target, nil, []clientconfig.ProjectEntry{{Project: "/a", Name: "x"}}, entry); err == nil {
			t.Errorf("%s: %s", text, ch.Diff())
		}
		if got := read(t, target.File); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
	target := clientconfig.Target{Client: lookup(t, "cursor"), File: filepath.Join(t.TempDir(), "mcp.json")}
	write(t, target.File, []byte(withProjects))
	if p := servers(t, target).Projects(); p != nil {
		t.Errorf("Cursor has %v", p)
	}
}
