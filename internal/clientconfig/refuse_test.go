package clientconfig_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

func TestRefused(t *testing.T) {
	deep := strings.Repeat("[", 600)
	for _, tt := range []struct {
		name, client, text string
		line, column       int
		problem, fix       string
	}{
		{"a missing comma", "cursor", "{\n  \"a\": \"SECRET\"\n  \"b\": 1\n}", 3, 3, "invalid JSON: invalid character", "correct the file"},
		{"a bad escape", "cursor", "{\n  \"é\": \"SECRET \\q\"\n}", 2, 8, "invalid JSON", "by hand"},
		{"a bad word", "cursor", "{\"a\": SECRET}", 1, 7, "invalid JSON", "by hand"},
		{"cut off", "cursor", "{\"a\": [1, ", 1, 11, "unexpected end of file", "correct the file"},
		{"two documents", "cursor", "{} {}", 1, 4, "invalid character", "correct the file"},
		{"a byte order mark does not count", "cursor", "\xef\xbb\xbfx", 1, 1, "invalid JSON", "correct the file"},
		{"an array", "cursor", "\n []", 2, 2, "does not contain a JSON object", "replace it with {}"},
		{"a string", "cursor", "\"SECRET\"", 1, 1, "does not contain a JSON object", "replace it with {}"},
		{"null for the servers", "cursor", "{\"mcpServers\": null}", 1, 16, "\"mcpServers\" is not an object", "replace it with {}"},
		{"two containers", "cursor", "{\"mcpServers\": {},\n\"mcp\\u0053ervers\": {}}", 2, 1, "duplicat", "delete one"},
		{"two entries", "cursor", "{\"mcpServers\": {\"loadout\": {},\n \"loadout\": {}}}", 2, 2, "duplicat", "delete one"},
		{"only a comment", "vscode", "// SECRET\n", 2, 1, "unexpected end of file", "correct the file"},
		{"UTF-16", "cursor", "\xff\xfe{\x00}\x00", 0, 0, "UTF-16", "save it as UTF-8"},
		{"Latin-1", "cursor", "{\n\"a\": \"caf\xe9\"}", 2, 10, "invalid UTF-8", "save it as UTF-8"},
		{"nested too deep", "cursor", "{\"a\": " + deep, 1, 506, "nesting too deep", "correct the file"},
		{"nested too deep behind comments", "cursor", "/**//**/" + deep, 1, 509, "nesting too deep", "correct the file"},
		{"nested too deep behind a string", "cursor", "[\"\\\"\", //\n" + deep, 2, 500, "nesting too deep", "correct the file"},
		{"nested too deep in objects", "cursor", strings.Repeat("{\"a\":", 600), 1, 2501, "nesting too deep", "correct the file"},

		{"a bare value", "codex", "a = 1\nb = SECRET\n", 2, 5, "invalid TOML", "correct the file"},
		{"no value", "codex", "a = 1\nb =\n", 2, 4, "missing value", "correct the file"},
		{"an open string", "codex", "a = \"SECRET\nb = 1", 1, 5, "unterminated string", "correct the file"},
		{"an open header", "codex", "[a\nb = 1", 1, 3, "invalid TOML", "correct the file"},
		{"JSON", "codex", "{}", 1, 3, "invalid TOML", "correct the file"},
		{"text after a value", "codex", "a = \"x\" SECRET", 1, 9, "invalid TOML", "correct the file"},
		{"a table twice", "codex", "[a]\n[b]\n[a]\n", 3, 2, "duplicat", "correct the file"},
		{"a key twice", "codex", "a = 1\na = 2\n", 2, 1, "duplicat", "correct the file"},
		{"one value", "codex", "mcp_servers = { a = { command = \"SECRET\" } }", 1, 1, "mcp_servers is written as one value", "[mcp_servers.NAME]"},
		{"a number", "codex", "'mcp_servers' = 5", 1, 1, "mcp_servers is written as one value", "[mcp_servers.NAME]"},
		{"an array of tables", "codex", "[[mcp_servers]]", 1, 1, "mcp_servers is an array of tables", "[mcp_servers.NAME]"},
		{"an array of entries", "codex", "\n [[mcp_servers.loadout]]", 2, 2, "mcp_servers.loadout is an array of tables", "[mcp_servers.NAME]"},
		{"a dotted entry", "codex", "mcp_servers.loadout.command = \"SECRET\"", 1, 1, "mcp_servers.loadout does not have its own table", "by hand"},
		{"an inline entry", "codex", "[mcp_servers]\nloadout = { command = \"SECRET\" }", 2, 1, "mcp_servers.loadout does not have its own table", "by hand"},
		{"many dots in a key", "codex", "a" + strings.Repeat(".a", 100_000) + " = 1", 1, 129, "too many parts", "correct the file"},
		{"many dots in a value", "codex", "a = {b" + strings.Repeat(" . a", 100_000) + " = 1}", 1, 264, "too many parts", "correct the file"},
		{"nested too deep in arrays", "codex", "a = " + deep, 1, 69, "nesting too deep", "correct the file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := at(t, tt.client, []byte(tt.text))
			_, err := clientconfig.Plan(target, command)
			var file *clientconfig.FileError
			if !errors.As(err, &file) {
				t.Fatalf("got %v", err)
			}
			if file.File != target.File || file.Line != tt.line || file.Column != tt.column {
				t.Errorf("at %s:%d:%d, want %d:%d", file.File, file.Line, file.Column, tt.line, tt.column)
			}
			if !strings.Contains(file.Problem, tt.problem) || !strings.Contains(file.Fix, tt.fix) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("the error shows a secret: %v", err)
			}
			if got := read(t, target.File); got != tt.text {
				t.Error("the file changed")
			}
		})
	}
}

// A file that cannot be edited is refused by undo too, not taken for one with
// nothing to undo.
func TestUndoRefused(t *testing.T) {
	for name, text := range map[string]string{
		"cursor": "{\"mcpServers\": {\"loadout\": {}, \"loadout\": {}}}",
		"codex":  "[mcp_servers]\nloadout = {command = \"loadout\"}",
	} {
		var file *clientconfig.FileError
		if ch, err := clientconfig.PlanUndo(at(t, name, []byte(text)), ""); !errors.As(err, &file) {
			t.Errorf("%s: got %v, %v", name, ch, err)
		}
	}
	if _, err := clientconfig.PlanUndo(at(t, "cursor", nil), "a b"); err == nil {
		t.Error("a bad name is accepted")
	}
}

func TestRefusedFiles(t *testing.T) {
	target := at(t, "cursor", nil)
	dir := filepath.Dir(target.File)
	for _, tt := range []struct {
		name string
		make func(file string) error
		want string
	}{
		{"large", func(f string) error { return os.WriteFile(f, make([]byte, 8<<20+1), 0o600) }, "too large (limit 8 MiB)"},
		{"directory", func(f string) error { return os.Mkdir(f, 0o700) }, "not a regular file"},
		{"below-a-file/config", func(f string) error { return os.WriteFile(filepath.Dir(f), nil, 0o600) }, "cannot resolve symlinks"},
		{"read-only", func(f string) error { return os.WriteFile(f, []byte("{}"), 0o400) }, "read-only"},
	} {
		target.File = filepath.Join(dir, tt.name)
		if err := tt.make(target.File); err != nil {
			t.Fatal(err)
		}
		_, err := clientconfig.Plan(target, command)
		var file *clientconfig.FileError
		if !errors.As(err, &file) || !strings.Contains(file.Problem, tt.want) || file.Fix == "" {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

// Where a backup cannot be, or a path cannot be made, nothing is planned.
func TestRefusedPaths(t *testing.T) {
	target := at(t, "cursor", nil)
	target.File = filepath.Join(filepath.Dir(target.File), strings.Repeat("x", 250))
	write(t, target.File, []byte("{}"))
	var file *clientconfig.FileError
	if ch, err := clientconfig.Plan(target, command); !errors.As(err, &file) || !strings.Contains(file.Problem, "cannot read the file") {
		t.Errorf("a name too long for a backup: got %v, %v", ch, err)
	}
	target.File = "config"
	if ch, err := clientconfig.Plan(target, command); err == nil || !strings.Contains(err.Error(), "absolute path") {
		t.Errorf("relative to nothing: got %v, %v", ch, err)
	}
}

// Files made to be slow are read, or refused, soon.
func TestHostileSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("large inputs")
	}
	lines := func(s string) string { return strings.Repeat(s, 1<<17/len(s)) }
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, texts := range map[string][]string{
		"vscode": {
			"{\"a\": [" + lines("1,") + "]}",
			"{" + lines("\"a\":1,") + "}",
			"{" + lines("/**/") + "}",
			lines("//\n") + "{}",
			"{\"a\":\"" + lines("\\n") + "\"}",
			lines("["), lines("{\"\":"), lines("\""), lines("/*"),
		},
		"goose": {
			numbered(10_000, "k%d: 1\n"), "extensions:\n" + numbered(10_000, "  k%d: {}\n"), "a: [" + lines("1,") + "]\n", lines("#\n"), lines("[") + "\n", lines("{a: "), lines("- "), lines("? "),
			"a: &a [x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: &d [*c, *c, *c, *c]\ne: [*d, *d, *d, *d]\n", "a: |\n" + lines(" x\n"), lines("\""),
		},
		"codex": {
			"a = [" + lines("1,") + "]", lines("\n"), lines("#\n"), lines("[a]\n"), lines("[[a]]\n"),
			lines("[[a.b.c.d]]\n"), lines("["), lines("a."), lines("a = {"), lines("\""), lines("'''"),
			numbered(10_000, "k%d = 1\n"), numbered(10_000, "[t.k%d]\n"),
			numbered(60, "k%d = "+strings.Repeat("{b=", 60)+"1"+strings.Repeat("}", 60)+"\n"),
			numbered(200, "k%d = "+strings.Repeat("{a=1,b"+strings.Repeat(".c", 60)+"=", 60)+"1"+strings.Repeat("}", 60)+"\n"),
			numbered(200, "k%d = "+strings.Repeat("[", 60)+"1"+strings.Repeat("]", 60)+"\n"),
			numbered(200, "k%d"+strings.Repeat(".a", 60)+" = 1\n"),
			numbered(200, "[k%d"+strings.Repeat(".a", 60)+"]\n"),
			"a = \"\"\"" + lines("\\\n") + "\"\"\"",
		},
	} {
		for _, text := range texts {
			start := time.Now()
			target := at(t, name, []byte(text))
			if ch, err := clientconfig.Plan(target, command); err == nil {
				apply(t, ch)
				undo(t, target)
				if read(t, target.File) != text {
					t.Errorf("%s %.20q… is not the same after undo", name, text)
				}
			}
			if elapsed := time.Since(start); elapsed > 20*time.Second {
				t.Errorf("%s %.20q… took %v", name, text, elapsed)
			}
		}
	}
}
