package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// Only paths after a typed @ at the start of a word name files.
func TestInputFiles(t *testing.T) {
	for _, tt := range []struct{ text, want string }{ // «» is pasted
		{"@a.txt", "[a.txt]"},
		{"see @a.txt, (@b/c.md) and @a.txt", "[a.txt, b/c.md) a.txt]"},
		{`@"my file.txt" x`, "[my file.txt]"},
		{"ada@example.com @ @", "[]"},
		{"«@a.txt»", "[]"},
		{"«x »@a.txt", "[a.txt]"},
		{"«x»@a.txt", "[]"},
		{"@«/etc/passwd»", "[]"},
		{"@a«/etc/passwd»", "[a]"},
		{"«@»/etc/passwd", "[]"},
		{"line\n@ü/文.md", "[ü/文.md]"},
	} {
		var e editor
		for i, part := range strings.FieldsFunc(tt.text, func(r rune) bool { return r == '«' || r == '»' }) {
			if pasted := strings.HasPrefix(tt.text, "«") == (i%2 == 0); pasted && strings.Contains(tt.text, "«") {
				e.paste(part)
			} else {
				e.insert(part)
			}
		}
		if got := fmt.Sprint(e.value().files()); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.text, got, tt.want)
		}
	}
}

// A long pasted text is one letter with a label. It is sent as a whole, and
// restored from the history, also that of the file.
func TestFoldedPaste(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	s := newScreen(t, &Options{History: open(t, path)})
	long := strings.TrimSuffix(strings.Repeat("a line\x1b[2J\r\n", 24), "\r\n")
	s.keys("Explain ")
	s.update(tea.PasteMsg{Content: long})
	s.keys(" and ")
	s.update(tea.PasteMsg{Content: strings.Repeat("x", maxPasteCharacters) + " @b.txt "})
	s.update(tea.PasteMsg{Content: "short @a.txt"})
	const shown = "Explain [Pasted text #1, 24 lines] and [Pasted text #2]short @a.txt"
	s.has(s.bottom(), "> "+shown)
	want := s.input.String()
	if !strings.Contains(want, "Explain a line[2J\na line") || strings.Count(want, "\n") != 23 {
		t.Errorf("the input is %q", want)
	}
	s.keys("enter")
	s.finish()
	s.has(s.text(), "> "+shown, "You said Explain a line")
	for range 2 {
		s.keys("up")
		if got := s.input.value(); got.text != want || got.shown() != shown || len(got.files()) != 0 {
			t.Errorf("the history has %q, %q", got.shown(), got.files())
		}
		s = newScreen(t, &Options{History: open(t, path)})
	}
	s.keys("up")
	for range len("short @a.txt") {
		s.input.key("left", "")
	}
	s.keys("tab")
	s.has(s.bottom(), "xxxx @b.txt short @a.txt")
	if files := s.input.value().files(); len(files) > 0 {
		t.Errorf("unfolded text names %q", files)
	}
	s.input.key("ctrl+u", "")
	if got := s.input.String(); got != "short @a.txt" {
		t.Errorf("after Ctrl-U there is %.100q", got)
	}
	s.keys("ctrl+c")
	s.update(tea.PasteMsg{Content: "/quit\n" + long})
	s.keys("enter")
	s.finish()
	if s.leaving {
		t.Error("a folded text was a command")
	}
}

// A label counts lines. A line break at the end begins none.
func TestPasteLabel(t *testing.T) {
	for text, want := range map[string]string{"1\n2\n3\n4\n5": "", "1\n2\n3\n4\n5\n": "", "1\n2\n3\n4\n5\n6": "[Pasted text #1, 6 lines]", "1\n2\n3\n4\n5\n6\n": "[Pasted text #1, 6 lines]", strings.Repeat("x", 801) + "\n": "[Pasted text #1]"} {
		got := input{text, []extent{{0, len(text)}}}.shown()
		if want == "" {
			want = text
		}
		if got != want {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
	}
}

// Pasted parts survive trimming, joining and the file format. Invalid ones make
// everything count as pasted.
func TestInputParts(t *testing.T) {
	in := input{"  ab cd  ", []extent{{1, 4}, {7, 9}}}
	if got := in.trim(" ", " "); fmt.Sprint(got) != fmt.Sprint(input{"ab cd", []extent{{0, 2}}}) {
		t.Errorf("trimmed: %v", got)
	}
	if got := joinInputs([]input{{text: "x"}, in}); got.text != "x\n"+in.text || fmt.Sprint(got.pasted) != "[{3 6} {9 11}]" {
		t.Errorf("joined: %v", got)
	}
	for stored, want := range map[string]input{
		`"a"`:                             {text: "a"},
		`{"text":"abc","pasted":[[1,2]]}`: {"abc", []extent{{1, 2}}},
		`{"text":"abc","pasted":[[2,1]]}`: {"abc", []extent{{0, 3}}},
		`{"text":"abc","pasted":[[1,9]]}`: {"abc", []extent{{0, 3}}},
	} {
		var got input
		if err := json.Unmarshal([]byte(stored), &got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, %v", stored, got, err)
		}
		if again, err := json.Marshal(got); err != nil || fmt.Sprint(got) == fmt.Sprint(want) && len(want.pasted) < 1 && string(again) != stored {
			t.Errorf("%s: written as %s, %v", stored, again, err)
		}
	}
}

// Files are completed while the user types a path, and attached to the message.
// If that fails, the message returns to the editor.
func TestAttachedFiles(t *testing.T) {
	var asked [][]string
	o := &Options{
		CompleteFile: func(path string) []Choice {
			if path == "my" {
				return []Choice{{Name: "my file.txt"}, {Name: "mydir/"}}
			}
			return nil
		},
		Attach: func(_ context.Context, paths []string) (string, []AttachNote, error) {
			asked = append(asked, paths)
			if paths[0] == "dir" {
				return "", nil, errors.New("attach dir: is a directory")
			}
			return " ATTACHED", []AttachNote{{Text: "attached \x1b[2J" + paths[0]}, {Text: "cut", Warning: true}}, nil
		},
	}
	s := newScreen(t, o)
	load := func() {
		t.Helper()
		s.running.Wait()
		for len(s.messages) > 0 {
			s.update(<-s.messages)
		}
	}
	s.keys("see @my")
	load()
	s.has(s.bottom(), "› my file.txt", "  mydir/")
	s.keys("enter")
	if got := s.input.String(); got != `see @"my file.txt" ` {
		t.Fatalf("Enter completes to %q", got)
	}
	s.keys("now", "enter")
	s.finish()
	s.has(s.text(), "✓ attached [2Jmy file.txt\n! cut", "ATTACHED", `> see @"my file.txt" now`)
	s.keys("@my")
	load()
	s.keys("down", "tab")
	if got := s.input.String(); got != "@mydir/" {
		t.Errorf("Tab completes to %q", got)
	}
	s.keys("ctrl+c", "read @dir", "enter")
	s.finish()
	s.has(s.text(), "is a directory")
	if got := s.input.String(); got != "read @dir" || len(asked) != 2 {
		t.Errorf("the input is %q after %q", got, asked)
	}
}

// A pasted path attaches nothing. If there is such a file, a line says so.
func TestPastedPath(t *testing.T) {
	s := newScreen(t, &Options{
		CompleteFile: func(path string) []Choice { return []Choice{{Name: "a.txt"}} },
		Attach: func(context.Context, []string) (string, []AttachNote, error) {
			t.Error("it was attached")
			return "", nil, nil
		},
	})
	s.update(tea.PasteMsg{Content: "see @a.txt and @b.txt "})
	s.update(tea.PasteMsg{Content: strings.Repeat("@a.txt\n", 10)})
	s.keys("enter")
	s.finish()
	if got := s.text(); strings.Count(got, "pasted @a.txt is not attached; type the path to attach the file") != 1 || strings.Contains(got, "pasted @b") {
		t.Errorf("it prints\n%s", got)
	}
	s.keys("@")
	s.running.Wait()
	s.update(tea.PasteMsg{Content: "a.txt"})
	s.keys("enter")
	s.finish()
	if n := strings.Count(s.text(), "pasted @a.txt is not attached"); n != 2 {
		t.Errorf("%d notices\n%s", n, s.text())
	}
}

// A completion replaces the word around the cursor. A name that cannot be written
// after an @ is not offered.
func TestCompletionInsideWord(t *testing.T) {
	s := newScreen(t, &Options{CompleteFile: func(string) []Choice {
		return []Choice{{Name: `a "b.txt`}, {Name: `"c`}, {Name: "notes.txt"}}
	}})
	s.keys("see @nope now")
	for range len("pe now") {
		s.input.key("left", "")
	}
	s.complete()
	s.running.Wait()
	for len(s.messages) > 0 {
		s.update(<-s.messages)
	}
	if got := s.bottom(); strings.Contains(got, "b.txt") || strings.Contains(got, `"c`) {
		t.Errorf("it offers\n%s", got)
	}
	s.keys("tab")
	if got := s.input.String(); got != "see @notes.txt  now" {
		t.Errorf("Tab completes to %q", got)
	}
}
