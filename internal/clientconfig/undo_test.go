package clientconfig_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

var plainEntry = clientconfig.Entry{Command: "/usr/local/bin/loadout", Args: []string{"mcp"}}

// What a user added to the entry is still in a backup after it was replaced and
// undone.
func TestUndoKeepsEditedEntry(t *testing.T) {
	for name, edit := range map[string][2]string{
		"env":     {`"mcp"]`, `"mcp"], "env": {"KEY": "precious"}`},
		"skills":  {`"mcp"]`, `"mcp", "--skills", "/precious"]`},
		"command": {`/usr/local/bin/loadout`, `/usr/local/bin/precious`},
	} {
		for _, before := range []string{"{\n  \"a\": 1\n}\n", ""} {
			var text []byte
			if before != "" {
				text = []byte(before)
			}
			target := at(t, "cursor", text)
			connect(t, target, plainEntry)
			write(t, target.File, []byte(strings.Replace(read(t, target.File), edit[0], edit[1], 1)))
			second := connect(t, target, plainEntry)
			back := undo(t, target)
			if slices.Contains(back.Removes, second.Backup) || !strings.Contains(strings.Join(back.Notes, "\n"), second.Backup) {
				t.Errorf("%s: removed %v, notes %q", name, back.Removes, back.Notes)
			}
			if b, err := os.ReadFile(second.Backup); err != nil || !strings.Contains(string(b), "precious") {
				t.Errorf("%s: the backup has %q, %v", name, b, err)
			}
			if b, _ := os.ReadFile(target.File); strings.Contains(string(b), "loadout") || before != "" && string(b) != before {
				t.Errorf("%s: undo left %q", name, b)
			}
		}
	}
}

// An entry of another program, which Loadout replaced, is restored, and a second
// undo leaves it alone.
func TestUndoRestoresReplacedEntry(t *testing.T) {
	own := map[string]string{
		"cursor":   `{"mcpServers":{"loadout":{"command":"/my/wrapper","env":{"KEY":"SECRET"}}, "b": {}}}`,
		"codex":    "[mcp_servers.loadout] # mine\ncommand = \"/my/wrapper\"\nenv = {KEY = \"SECRET\"}\n",
		"opencode": `{"mcp": {"loadout": {"type": "local", "command": ["/my/wrapper"]}}}`,
		"goose":    "extensions:\n  loadout: # mine\n    cmd: /my/wrapper\n    type: stdio\n",
	}
	for name, text := range own {
		target := at(t, name, []byte(text))
		connect(t, target, plainEntry)
		connect(t, target, command) // and once more
		back := undo(t, target)
		if back.Action != clientconfig.Replace || strings.Contains(back.Diff(), "SECRET") {
			t.Errorf("%s: %s\n%s", name, back.Action, back.Diff())
		}
		if got := read(t, target.File); got != text {
			t.Errorf("%s: undo left %s", name, got)
		}
		if again := undo(t, target); again.Action != clientconfig.None || len(again.Notes) != 1 || !strings.Contains(again.Notes[0], "does not start Loadout") {
			t.Errorf("%s: a second undo: %+v", name, again)
		}
		if left, _ := filepath.Glob(target.File + ".*"); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}

		// After another change, the entry remains in the backup.
		ch := connect(t, target, plainEntry)
		after := read(t, target.File)
		if name == "codex" || name == "goose" {
			after = "# x\n" + after
		} else {
			after += "\n"
		}
		write(t, target.File, []byte(after))
		back = undo(t, target)
		if back.Action != clientconfig.Remove || !strings.Contains(strings.Join(back.Notes, "\n"), ch.Backup) || read(t, ch.Backup) != text {
			t.Errorf("%s, changed since: %+v", name, back)
		}
	}
}

// A file that Loadout created and changed is deleted with its backups.
func TestUndoDeletesChangedFile(t *testing.T) {
	target := at(t, "cursor", nil)
	connect(t, target, clientconfig.Entry{Command: "/old/loadout", Args: []string{"mcp"}})
	connect(t, target, plainEntry)
	if back := undo(t, target); back.Action != clientconfig.Delete {
		t.Errorf("got %+v", back)
	}
	if left, _ := os.ReadDir(filepath.Dir(target.File)); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// PlanMissing leaves an entry with options of the user alone, and updates a
// plain one.
func TestPlanMissing(t *testing.T) {
	for _, tt := range []struct {
		entry  clientconfig.Entry
		action clientconfig.Action
		kept   string
	}{
		{command, clientconfig.None, "with --skills"},
		{remote, clientconfig.None, "by URL"},
		{clientconfig.Entry{Command: "/my/wrapper", Args: []string{"mcp"}}, clientconfig.None, "with another command"},
		{plainEntry, clientconfig.None, ""},
		{clientconfig.Entry{Command: "/old/loadout", Args: []string{"mcp"}}, clientconfig.Replace, ""},
		{clientconfig.Entry{Command: "/other/program"}, clientconfig.Replace, ""},
	} {
		for _, client := range []string{"cursor", "codex", "opencode", "goose"} {
			target := at(t, client, nil)
			connect(t, target, tt.entry)
			ch, err := clientconfig.PlanMissing(target, plainEntry)
			if err != nil || ch.Action != tt.action || ch.Existing != tt.kept {
				t.Errorf("%s, %v: %s %q, %v", client, tt.entry, ch.Action, ch.Existing, err)
			}
		}
	}
}

// opencode reads two files: an entry in either is found, not added to the other,
// and removed.
func TestSecondFile(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "opencode")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")
	write(t, second, []byte("{} // mine\n"))
	target := clientconfig.Target{Client: lookup(t, "opencode"), Environment: clientconfig.Environment{OS: "linux", Home: home}}
	connect(t, target, plainEntry)
	write(t, first, []byte("{}\n"))
	if ch := connect(t, target, plainEntry); ch.Action != clientconfig.None || ch.File != second {
		t.Errorf("a second entry: %s %s", ch.Action, ch.File)
	}
	if ch := undo(t, target); ch.File != second || read(t, second) != "{} // mine\n" || read(t, first) != "{}\n" {
		t.Errorf("undo of %s left %q and %q", ch.File, read(t, second), read(t, first))
	}
	connect(t, clientconfig.Target{Client: target.Client, File: second}, plainEntry)
	connect(t, clientconfig.Target{Client: target.Client, File: first}, plainEntry)
	others := target.Others()
	if len(others) != 1 {
		t.Fatalf("others: %v", others)
	}
	undo(t, target)
	undo(t, others[0])
	if read(t, second) != "{} // mine\n" || read(t, first) != "{}\n" {
		t.Errorf("undo of both left %q and %q", read(t, second), read(t, first))
	}
}

// Codex passes a server only the variables that its entry names, so that an entry
// names CODEX_HOME if it is set. Other clients pass their environment.
func TestEntryNamesVariables(t *testing.T) {
	environment := clientconfig.Environment{Getenv: func(name string) string {
		return map[string]string{"CODEX_HOME": "/moved", "CLAUDE_CONFIG_DIR": "/moved"}[name]
	}}
	for name, want := range map[string]string{"codex": "env_vars = [\"CODEX_HOME\"]\n", "claude-code": ""} {
		target := at(t, name, nil)
		entry := target.Client.WithVariables(plainEntry, environment)
		if unset := target.Client.WithVariables(plainEntry, clientconfig.Environment{}); len(unset.EnvVars) > 0 {
			t.Errorf("%s without variables: %q", name, unset.EnvVars)
		}
		if byURL := target.Client.WithVariables(remote, environment); len(byURL.EnvVars) > 0 {
			t.Errorf("%s by URL: %q", name, byURL.EnvVars)
		}
		before := ""
		if name == "codex" {
			before = "# mine\nmodel = \"x\" # and this\n"
			write(t, target.File, []byte(before))
		}
		connect(t, target, plainEntry) // before the variable was set
		if ch, err := clientconfig.PlanMissing(target, entry); err != nil || (ch.Action == clientconfig.Replace) != (want != "") {
			t.Errorf("%s: %+v, %v", name, ch, err)
		}
		connect(t, target, entry)
		if text := read(t, target.File); strings.Contains(text, "_HOME") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: the file has %q", name, text)
		}
		if ch, err := clientconfig.PlanMissing(target, entry); err != nil || ch.Action != clientconfig.None || ch.Existing != "" {
			t.Errorf("%s again: %+v, %v", name, ch, err)
		}
		// Variables that the user named stay.
		if ch, err := clientconfig.PlanMissing(target, plainEntry); err != nil || ch.Action != clientconfig.None || (ch.Existing == "with other settings") != (want != "") {
			t.Errorf("%s without the variable: %+v, %v", name, ch, err)
		}
		undo(t, target)
		if b, _ := os.ReadFile(target.File); string(b) != before {
			t.Errorf("%s: undo left %q", name, b)
		}
	}
}
