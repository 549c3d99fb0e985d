package clientconfig_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

// at is a target for a file with this text; nil text for no file.
func at(t testing.TB, name string, text []byte) clientconfig.Target {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	if text != nil {
		write(t, file, text)
	}
	return clientconfig.Target{Client: lookup(t, name), File: file}
}

func write(t testing.TB, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o640); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// connect plans and applies.
func connect(t testing.TB, target clientconfig.Target, e clientconfig.Entry) *clientconfig.Change {
	t.Helper()
	ch, err := clientconfig.Plan(target, e)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, ch)
	return ch
}

func undo(t testing.TB, target clientconfig.Target) *clientconfig.Change {
	t.Helper()
	ch, err := clientconfig.PlanUndo(target, "")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, ch)
	return ch
}

func apply(t testing.TB, ch *clientconfig.Change) {
	t.Helper()
	if err := ch.Apply(); err != nil {
		t.Fatal(err)
	}
}

// spellings returns the text as different editors and systems write it.
func spellings(text []byte) map[string][]byte {
	crlf := bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	mark := []byte("\xef\xbb\xbf")
	return map[string][]byte{
		"plain":          text,
		"crlf":           crlf,
		"bom":            append(bytes.Clone(mark), text...),
		"bom and crlf":   append(bytes.Clone(mark), crlf...),
		"no line end":    bytes.TrimRight(text, "\n"),
		"many line ends": append(bytes.Clone(text), "\n\n\n"...),
		"spaces at end":  append(bytes.Clone(text), " \t "...),
	}
}

// kept makes sure that every line of before is in after, in order, at most
// with a comma more.
func kept(t *testing.T, before, after string) {
	t.Helper()
	rest := strings.Split(after, "\n")
next:
	for _, want := range strings.Split(before, "\n") {
		for i, line := range rest {
			if line == want || strings.Replace(line, ",", "", 1) == strings.Replace(want, ",", "", 1) {
				rest = rest[i+1:]
				continue next
			}
		}
		t.Errorf("the line %q is gone", want)
	}
}

func TestRealFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) != len(clientconfig.All()) {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		for spelling, text := range spellings([]byte(read(t, file))) {
			if name == "goose" && spelling == "spaces at end" {
				continue // a tab there is invalid
			}
			t.Run(name+"/"+spelling, func(t *testing.T) { realFile(t, name, text) })
		}
	}
}

func realFile(t *testing.T, name string, text []byte) {
	target := at(t, name, text)
	plan, err := clientconfig.Plan(target, command)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Action != clientconfig.Add || plan.Backup != target.File+".loadout-backup" {
		t.Errorf("got %+v", plan)
	}
	if strings.Contains(plan.Diff(), "SECRET") {
		t.Errorf("the diff shows a secret:\n%s", plan.Diff())
	}
	for _, value := range append(command.Args, command.Command) {
		if !strings.Contains(plan.Diff(), `"`+value+`"`) {
			t.Errorf("the diff does not show %q:\n%s", value, plan.Diff())
		}
	}
	apply(t, plan)
	after := read(t, target.File)
	if name != "cursor" { // has one line
		kept(t, string(text), after)
	}
	if crlf := bytes.Contains(text, []byte("\r\n")); crlf && strings.Count(after, "\n") != strings.Count(after, "\r\n") {
		t.Errorf("line ends are mixed:\n%q", after)
	}
	if read(t, plan.Backup) != string(text) {
		t.Error("the backup is not what the file was")
	}
	if again := connect(t, target, command); again.Action != clientconfig.None || again.Diff() != "" {
		t.Errorf("a second time: %s\n%s", again.Action, again.Diff())
	}
	if read(t, target.File) != after {
		t.Error("a second time changed the file")
	}

	back := undo(t, target)
	if back.Action != clientconfig.Remove || strings.Contains(back.Diff(), "SECRET") {
		t.Errorf("undo: %s\n%s", back.Action, back.Diff())
	}
	if got := read(t, target.File); got != string(text) {
		t.Errorf("undo left\n%s", got)
	}
	if left, _ := filepath.Glob(target.File + ".*"); len(left) > 0 {
		t.Errorf("undo left %v", left)
	}
	if again := undo(t, target); again.Action != clientconfig.None {
		t.Errorf("undo a second time: %s", again.Action)
	}

	// Where the container holds something else, the backup is not needed. In
	// TOML the number of empty lines at the end may differ.
	tidy := bytes.HasSuffix(text, []byte("\n")) && !bytes.HasSuffix(text, []byte("\n\n"))
	if name == "gemini" || name == "codex" && !tidy {
		return
	}
	if err := os.Remove(connect(t, target, remoteOr(name)).Backup); err != nil {
		t.Fatal(err)
	}
	undo(t, target)
	if got := read(t, target.File); got != string(text) {
		t.Errorf("undo without a backup left\n%s", got)
	}
}

// remoteOr returns an entry with a URL if the client supports it.
func remoteOr(name string) clientconfig.Entry {
	if name == "claude-desktop" {
		return command
	}
	return remote
}

// Edits between connect and undo stay.
func TestUndoAfterEdits(t *testing.T) {
	for _, tt := range []struct{ name, client, before, old, new, want string }{
		{"another server after ours", "cursor", "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n",
			"mcp\"]\n    }\n", "mcp\"]\n    }, // mine\n    \"z\": {}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {}, // mine\n    \"z\": {}\n  }\n}\n"},
		{"the container was ours and has another now", "cursor", "{}",
			"mcp\"]\n    }\n", "mcp\"]\n    },\n    \"z\": {}\n",
			"{\n  \"mcpServers\": {\n    \"z\": {}\n  }\n}"},
		{"the container was ours", "cursor", "{\n  \"a\": 1\n}\n",
			"\"a\": 1", "\"a\": 2", "{\n  \"a\": 2\n}\n"},
		{"the container was theirs", "cursor", "{\n  \"a\": 1,\n  \"mcpServers\": {}\n}\n",
			"\"a\": 1", "\"a\": 2", "{\n  \"a\": 2,\n  \"mcpServers\": {}\n}\n"},
		{"a comment on ours", "cursor", "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n",
			"    \"loadout\"", "    // the good one\n    \"loadout\"",
			"{\n  \"mcpServers\": {\n    \"a\": {}\n    // the good one\n  }\n}\n"},
		{"the only one, with a comment", "cursor", "{}",
			"    \"loadout\"", "    // the good one\n    \"loadout\"",
			"{\n  \"mcpServers\": {\n    // the good one\n  }\n}"},
		{"a trailing comma", "vscode", "{\n  \"servers\": {\n    \"a\": {},\n  },\n}\n",
			"\"a\": {}", "\"b\": {}", "{\n  \"servers\": {\n    \"b\": {},\n  },\n}\n"},
		{"on one line", "cursor", `{"mcpServers": {"a": {}}}`,
			`{"a"`, `{"b"`, `{"mcpServers": {"b": {}}}`},
		{"on one line, moved to the front", "cursor", `{"mcpServers": {}}`,
			`]}`, `]}, "b": {}`, `{"mcpServers": {"b": {}}}`},
		{"toml, a table after ours", "codex", "a = 1\n",
			"\"mcp\"]\n", "\"mcp\"]\n\n# next\n[b]\nc = 1\n", "a = 1\n\n# next\n[b]\nc = 1\n"},
		{"toml, settings of ours", "codex", "a = 1\n",
			"\"mcp\"]\n", "\"mcp\"] # x\n# y\nenv.A = \"1\"\n\n[mcp_servers.loadout.tools]\nb = 1\n", "a = 1\n"},
		{"toml, ours spelled otherwise", "codex", "a = 1\n",
			"[mcp_servers.loadout]", "  [ 'mcp_servers' . \"load\\u006fut\" ] # x", "a = 1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := at(t, tt.client, []byte(tt.before))
			connect(t, target, clientconfig.Entry{Command: "loadout", Args: []string{"mcp"}})
			connected := read(t, target.File)
			edited := strings.Replace(connected, tt.old, tt.new, 1)
			if edited == connected {
				t.Fatalf("%q is not in\n%s", tt.old, connected)
			}
			write(t, target.File, []byte(edited))
			undo(t, target)
			if got := read(t, target.File); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s\nfrom\n%s", got, tt.want, edited)
			}
		})
	}
}

func TestUndoDeletesWhatItCreated(t *testing.T) {
	for _, name := range []string{"cursor", "codex"} {
		target := at(t, name, nil)
		target.File = filepath.Join(filepath.Dir(target.File), "new", "deep", "config")
		if ch := connect(t, target, command); ch.Action != clientconfig.Create || ch.Backup != "" || !strings.HasPrefix(ch.Diff(), "--- /dev/null\n") {
			t.Errorf("%s: %+v\n%s", name, ch, ch.Diff())
		}
		if ch := undo(t, target); ch.Action != clientconfig.Delete || !strings.Contains(ch.Diff(), "+++ /dev/null\n") {
			t.Errorf("%s: %+v\n%s", name, ch, ch.Diff())
		}
		if _, err := os.Stat(target.File); !os.IsNotExist(err) {
			t.Errorf("%s: the file is still there: %v", name, err)
		}

		// Somebody formatted it meanwhile.
		connect(t, target, command)
		write(t, target.File, []byte("\n"+strings.ReplaceAll(read(t, target.File), ",", " ,")))
		if ch := undo(t, target); ch.Action != clientconfig.Delete {
			t.Errorf("%s, formatted: %+v", name, ch)
		}

		// Or put something else in.
		connect(t, target, command)
		other := map[string]string{"cursor": `{"x": 1, `, "codex": "x = 1\n["}[name]
		write(t, target.File, []byte(other+read(t, target.File)[1:]))
		if ch := undo(t, target); ch.Action != clientconfig.Remove {
			t.Errorf("%s, edited: %+v", name, ch)
		}
		if got := read(t, target.File); !strings.HasPrefix(got, other[:6]) || strings.Contains(got, "loadout") {
			t.Errorf("%s, edited: got %q", name, got)
		}
	}
}

func TestReplace(t *testing.T) {
	for _, tt := range []struct{ name, client, before, want string }{
		{"keeps its place", "cursor",
			"{\n\t\"mcpServers\": {\n\t\t\"loadout\": {\"command\": \"old\", \"env\": {\"K\": \"SECRET\"}}, // c\n\t\t\"z\": {}\n\t}\n}",
			"{\n\t\"mcpServers\": {\n\t\t\"loadout\": {\n\t\t\t\"command\": \"loadout\",\n\t\t\t\"args\": [\"mcp\"]\n\t\t}, // c\n\t\t\"z\": {}\n\t}\n}"},
		{"its name in escapes", "cursor", `{"mcpServers":{"l\u006fadout":5}}`, `{"mcpServers":{"l\u006fadout":{"command":"loadout","args":["mcp"]}}}`},
		{"other arguments", "cursor", `{"mcpServers":{"loadout":{"command":"loadout","args":["mcp","SECRET"]}}}`, `{"mcpServers":{"loadout":{"command":"loadout","args":["mcp"]}}}`},
		{"all its tables", "codex",
			"[mcp_servers.loadout]\nurl = \"http://h/SECRET\"\n\n[mcp_servers.loadout.env]\nA = \"SECRET\"\n\n# z\n[z]\n\n[mcp_servers.loadout.http_headers]\nB = 'SECRET'\n\n[y]\n",
			"[mcp_servers.loadout]\ncommand = \"loadout\"\nargs = [\"mcp\"]\n\n# z\n[z]\n\n[y]\n"},
		{"without a table of its own", "codex", "[mcp_servers.loadout.env]\nA = \"SECRET\"\n", "[mcp_servers.loadout]\ncommand = \"loadout\"\nargs = [\"mcp\"]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := at(t, tt.client, []byte(tt.before))
			ch := connect(t, target, clientconfig.Entry{Command: "loadout", Args: []string{"mcp"}})
			if ch.Action != clientconfig.Replace || strings.Contains(ch.Diff(), "SECRET") {
				t.Errorf("%s\n%s", ch.Action, ch.Diff())
			}
			if got := read(t, target.File); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			// The user's own entry is now only in the backup, which stays, unless
			// the undo restores it.
			back := undo(t, target)
			if back.Action == clientconfig.Replace {
				if got := read(t, target.File); got != tt.before || strings.Contains(back.Diff(), "SECRET") {
					t.Errorf("undo left %s\n%s", got, back.Diff())
				}
				return
			}
			if len(back.Removes) != 0 || len(back.Notes) == 0 || !strings.Contains(back.Notes[0], ch.Backup) || read(t, ch.Backup) != tt.before {
				t.Errorf("undo: %+v", back)
			}
		})
	}
}

// An equal entry in another spelling is no change.
func TestEqualEntry(t *testing.T) {
	for client_, text := range map[string]string{
		"cursor": "{/* x */\"mcpServers\":{\"loadout\":{\"args\":[\"m\\u0063p\",/* y */],\"command\":\"loadout\",}}}",
		"codex":  "['mcp_servers'.\"loadout\"]\nargs = [\n  'mcp', # y\n]\n\"command\" = '''loadout'''",
	} {
		target := at(t, client_, []byte(text))
		if ch := connect(t, target, clientconfig.Entry{Command: "loadout", Args: []string{"mcp"}}); ch.Action != clientconfig.None {
			t.Errorf("%s: %s\n%s", client_, ch.Action, ch.Diff())
		}
	}
}

// Blank files are as good as none.
func TestBlankFile(t *testing.T) {
	for _, name := range []string{"cursor", "codex"} {
		for _, text := range []string{"", " ", "\n", "\r\n", "\xef\xbb\xbf", "\xef\xbb\xbf \r\n\t"} {
			target := at(t, name, []byte(text))
			if ch := connect(t, target, command); ch.Action != clientconfig.Add {
				t.Errorf("%s %q: %s", name, text, ch.Action)
			}
			if ch := connect(t, target, command); ch.Action != clientconfig.None {
				t.Errorf("%s %q: again %s", name, text, ch.Action)
			}
			undo(t, target)
			if got := read(t, target.File); got != text {
				t.Errorf("%s: %q became %q", name, text, got)
			}
		}
	}
}
