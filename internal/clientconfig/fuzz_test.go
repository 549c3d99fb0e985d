package clientconfig

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seeds gives a fuzzer the real files of one format, and small ones.
func seeds(f *testing.F, format string, small ...string) {
	files, err := filepath.Glob("testdata/*." + format)
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		small = append(small, string(text), strings.ReplaceAll(string(text), "\n", "\r\n"))
	}
	for _, text := range small {
		f.Add([]byte(text))
	}
}

func FuzzJSON(f *testing.F) {
	seeds(f, "json", "", "{}", "{\"mcpServers\":{}}", "\xef\xbb\xbf{//\n}", "{\"mcpServers\":{\"loadout\":1,},}",
		"{\"mcpServers\":{//\n\"loadout\":{}}}", "{\"mcpServers\":{\"a\":1,//\n\"loadout\":{}//\n,}}", "{\"mcpServers\":{\"loadout\":{}/**/,\"a\":1}}",
		"{\"a\":1/**/,/**/\"mcpServers\":{\n\"loadout\":{}}}//")
	c, err := Lookup("claude-code")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) { edits(t, c, src) })
}

func FuzzTOML(f *testing.F) {
	seeds(f, "toml", "", "a=1", "[mcp_servers]", "[mcp_servers.loadout]", "[mcp_servers.loadout]\n\n[mcp_servers.loadout.env]\na=1#x\n\n",
		"[mcp_servers]\na={b=1}\n[mcp_servers.loadout.x]\n", "a='''\n'''''\nb=\"\"\"\\\"\"\"\"", "[[mcp_servers.loadout.x]]\na=nan\n[a]", "'mcp_servers'.a.b=1",
		"\xef\xbb\xbf#\n\n[mcp_servers.loadout]\na=[#\n]\n\n\n#\n")
	c, err := Lookup("codex")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) { edits(t, c, src) })
}

func FuzzYAML(f *testing.F) {
	seeds(f, "yaml", "", "a: 1", "extensions:", "extensions: {}", "extensions:\n  loadout: {}", "# x\n---\na: 1\n", "extensions:\n  a: |\n    # x\n\nb: 1\n",
		"extensions:\n  loadout:\n    cmd: x # y\n  # z\n  a: {}\n", "\xef\xbb\xbfextensions: # x\r\n\r\nb:\r\n- 1\r\n", "? extensions\n: a: 1\n", "extensions: &a\n  b: 1\nc: *a\n",
		"a: &a {b: 1}\nextensions:\n  <<: *a\n", "extensions:\n  loadout: |+\n    x\n\n\nb: 1\n", "\"extensions\" : {} # }\n",
		"extensions:\n...", "extensions:\n  loadout: {}\n... # x\n# y\n")
	c, err := Lookup("goose")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) { edits(t, c, src) })
}

// edits checks for any text that the result parses, differs only by the entry, is
// stable, and preserves everything else.
func edits(t *testing.T, c Client, src []byte) {
	doc, err := parse(c, src)
	if err != nil {
		if located := locate(err, "FILE", src); !strings.HasPrefix(located.Error(), "FILE") {
			t.Errorf("no position in %v", located)
		}
		return
	}
	e := Entry{Name: DefaultName, Command: "loadout", Args: []string{"mcp"}}
	want, err := c.fields(e)
	if err != nil {
		t.Fatal(err)
	}
	edit, err := doc.setEntry(e.Name, want)
	if err != nil {
		return
	}
	_, there, err := doc.entry(e.Name)
	if err != nil {
		t.Fatalf("edited, but not to be read: %v", err)
	}
	if !there {
		for _, s := range edit {
			if removed := strings.Trim(string(src[s.start:s.end]), " \t{}"); removed != "" || s.start != s.end && c.Format != YAML { // {} of an empty mapping
				t.Errorf("adding took out %q", src[s.start:s.end])
			}
		}
	}
	after := edit.apply(src)
	next, err := verify(c, doc, after, e.Name, want)
	if err != nil && c.Format == YAML {
		return // refused, as where a newline would change a text
	}
	if err != nil {
		t.Fatalf("%v\n%q\n%q", err, src, after)
	}
	if again, err := next.setEntry(e.Name, want); err != nil || !bytes.Equal(again.apply(after), after) {
		t.Errorf("replacing it by the same changed %q, %v", after, err)
	}
	shows(t, src, doc)
	shows(t, after, next)

	for _, container := range []bool{false, true} {
		edit, err := next.removeEntry(e.Name, container)
		if err != nil {
			t.Fatalf("%v\n%q", err, after)
		}
		left := edit.apply(after)
		last, err := verify(c, next, left, e.Name, nil)
		if c.Format == YAML {
			continue // may be refused; comments after values are no marks of their own
		}
		if err != nil {
			t.Fatalf("%v\n%q\n%q", err, after, left)
		}
		if there {
			continue
		}
		if a, b := comments(src, doc), comments(left, last); a != b {
			t.Errorf("the comments were\n%q\nare\n%q", a, b)
		}
	}
}

// shows checks that a masked text keeps its line positions, and that marks are in order.
func shows(t *testing.T, src []byte, doc document) {
	at := 0
	marks := doc.marks(DefaultName)
	for _, m := range marks {
		if m.start < at || m.end < m.start || m.end > len(src) {
			t.Fatalf("mark %v after %d in %q", m.span, at, src)
		}
		at = m.end
	}
	text := maskText(src, marks, showOldEntry(src, nil))
	if a, b := strings.Count(text, "\n"), bytes.Count(src, []byte("\n")); a != b {
		t.Errorf("%d line ends are %d\n%q\n%q", b, a, src, text)
	}
}

// comments returns the comments of a document in order.
func comments(src []byte, doc document) string {
	var b strings.Builder
	for _, m := range doc.marks("") {
		if m.kind == markComment {
			b.Write(bytes.TrimRight(src[m.start:m.end], "\r"))
			b.WriteByte('\n')
		}
	}
	return b.String()
}
