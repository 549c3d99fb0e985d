package clientconfig_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

// Without the backup, only the entry is removed.
func TestYAMLEdits(t *testing.T) {
	const entry = "loadout:\n    name: loadout\n    type: stdio\n    cmd: loadout\n    args: [\"mcp\"]\n    enabled: true\n"
	deeper := "    " + strings.ReplaceAll(entry, "\n    ", "\n      ")
	for _, tt := range []struct{ name, before, after, left string }{
		{"no container", "a: 1\n", "a: 1\nextensions:\n  " + entry, ""},
		{"no newline at the end", "a: 1", "a: 1\nextensions:\n  " + entry, "a: 1\n"},
		{"comments only", "# mine\n", "# mine\nextensions:\n  " + entry, ""},
		{"document start", "--- # mine\na: 1\n", "--- # mine\na: 1\nextensions:\n  " + entry, ""},
		{"null", "extensions: # mine\na: 1\n", "extensions: # mine\n  " + entry + "a: 1\n", "extensions: {} # mine\na: 1\n"},
		{"null at the end", "a: 1\nextensions:", "a: 1\nextensions:\n  " + entry, "a: 1\nextensions: {}\n"},
		{"empty flow", "extensions: {}  # mine\na: 1\n", "extensions:  # mine\n  " + entry + "a: 1\n", "extensions: {}  # mine\na: 1\n"},
		{"null before a comment", "extensions:\n    # mine\na: 1\n", "extensions:\n    # mine\n  " + entry + "a: 1\n", "extensions: {}\n    # mine\na: 1\n"},
		{"before a comment", "extensions:\n    b: {enabled: true}\n\n# of a\na: 1\n", "extensions:\n    b: {enabled: true}\n" + deeper + "\n# of a\na: 1\n", ""},
		{"after a block with a number sign", "extensions:\n  b:\n    text: |\n      x\n\n      # y\n", "extensions:\n  b:\n    text: |\n      x\n\n      # y\n  " + entry, ""},
		{"after a block that has the newlines", "extensions:\n  b:\n    text: |+\n      x\n\nz: 1\n", "", "refused"},
		{"after a block", "extensions:\n  b:\n    text: |\n      x\nz: 1\n", "extensions:\n  b:\n    text: |\n      x\n  " + entry + "z: 1\n", ""},
		{"not indented list", "extensions:\n  b:\n    args:\n    - x\nz:\n- y\n", "extensions:\n  b:\n    args:\n    - x\n  " + entry + "z:\n- y\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := at(t, "goose", []byte(tt.before))
			plan, err := clientconfig.Plan(target, clientconfig.Entry{Command: "loadout", Args: []string{"mcp"}})
			if tt.left == "refused" {
				var file *clientconfig.FileError
				if !errors.As(err, &file) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			apply(t, plan)
			if got := read(t, target.File); got != tt.after {
				t.Errorf("got\n%s\nwant\n%s", got, tt.after)
			}
			// A comment that was added since prevents the restore from the backup.
			write(t, target.File, []byte("# new\n"+tt.after))
			undo(t, target)
			want := tt.left
			if want == "" {
				want = tt.before
			}
			if got := read(t, target.File); got != "# new\n"+want {
				t.Errorf("undo left\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestYAMLReplace(t *testing.T) {
	before := "extensions:\n  loadout: # SECRET\n    cmd: old\n    envs: {K: SECRET}\n    args:\n    - SECRET\n\n  z: {}\n"
	want := "extensions:\n  loadout:\n    name: loadout\n    type: stdio\n    cmd: loadout\n    args: [\"mcp\"]\n    enabled: true\n\n  z: {}\n"
	target := at(t, "goose", []byte(before))
	ch := connect(t, target, clientconfig.Entry{Command: "loadout", Args: []string{"mcp"}})
	if ch.Action != clientconfig.Replace || strings.Contains(ch.Diff(), "SECRET") || !strings.Contains(ch.Diff(), "-    cmd: old\n") {
		t.Errorf("%s\n%s", ch.Action, ch.Diff())
	}
	if got := read(t, target.File); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The same entry in another layout is no change.
func TestYAMLEqualEntry(t *testing.T) {
	text := "'extensions': &x\n  \"loadout\":\n    args:\n    - mcp\n    cmd: 'loadout'\n    enabled: True\n    name: loadout\n    type: stdio\n"
	target := at(t, "goose", []byte(text))
	if ch := connect(t, target, clientconfig.Entry{Command: "loadout", Args: []string{"mcp"}}); ch.Action != clientconfig.None {
		t.Errorf("%s\n%s", ch.Action, ch.Diff())
	}
}

func TestYAMLRefused(t *testing.T) {
	for _, text := range []string{
		"a: [",                          // syntax
		"- a\n",                         // no mapping
		"{a: 1}\n",                      // on one line
		"extensions: 5\n",               // no mapping
		"extensions: {b: {}}\n",         // on one line
		"a: 1\n---\nb: 1\n",             // two documents
		"a: 1\n...\n",                   // an explicit end
		"extensions: {}\nextensions:\n", // duplicated
		"b: &x {}\nextensions: *x\n",    // alias
		"extensions: &x\n  b: {}\nc: *x\n",
		"a: 1\u2028b: 2\n", // a line ending for some parsers
		"a: &a [*a]\n",     // recursive
		"a: 1\rb: 2\r",
	} {
		target := at(t, "goose", []byte(text))
		ch, err := clientconfig.Plan(target, command)
		var file *clientconfig.FileError
		if !errors.As(err, &file) {
			t.Errorf("%q: got %v %+v", text, err, ch)
		}
	}
}

// Nothing is undone if it is unclear which of two entries to remove.
func TestYAMLUndoRefusesDuplicates(t *testing.T) {
	target := at(t, "goose", []byte("extensions:\n  loadout:\n    cmd: loadout\n  loadout:\n    cmd: other\n"))
	ch, err := clientconfig.PlanUndo(target, "")
	if file, ok := errors.AsType[*clientconfig.FileError](err); !ok || file.Line != 4 || !strings.Contains(file.Problem, "loadout is duplicated") {
		t.Errorf("got %v, %+v", err, ch)
	}
}

// A document nested to the limit is edited; a deeper one is refused, not misread.
func TestYAMLDepth(t *testing.T) {
	const limit = 64 // levels below the root
	for depth, want := range map[int]bool{limit: true, limit + 1: false} {
		text := "a: " + strings.Repeat("[", depth-1) + "1" + strings.Repeat("]", depth-1) + "\n"
		change, err := clientconfig.Plan(at(t, "goose", []byte(text)), command)
		if err == nil {
			err = change.Apply()
		}
		if _, refused := errors.AsType[*clientconfig.FileError](err); (err == nil) != want || refused == want {
			t.Errorf("depth %d: got error %v", depth, err)
		}
	}
}
