package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/loadouttest"
	"github.com/loadout-dev/loadout/session"
)

func TestMemory(t *testing.T) {
	loadouttest.SessionLog(t, func(*testing.T) session.Log { return &session.MemoryLog{} })
}

func TestFile(t *testing.T) {
	loadouttest.SessionLog(t, func(t *testing.T) session.Log { return openFile(t, filepath.Join(t.TempDir(), "sessions", "1.jsonl")) })
}

func openFile(t *testing.T, path string) *session.FileLog {
	t.Helper()
	l, err := session.OpenFileLog(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func say(t *testing.T, l session.Log, texts ...string) {
	t.Helper()
	for _, text := range texts {
		e := &session.Event{Message: &session.Message{Role: llm.User, Text: text}}
		if err := l.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// fileWith returns the path of a closed log with three messages, and its lines.
func fileWith(t *testing.T) (path string, lines []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "1.jsonl")
	l := openFile(t, path)
	say(t, l, "one", "two", "three")
	l.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFileContinuesAfterReopen(t *testing.T) {
	path, _ := fileWith(t)
	l := openFile(t, path)
	say(t, l, "four")
	es := events(t, l)
	if len(es) != 4 || es[3].Seq != 4 || es[3].Message.Text != "four" {
		t.Errorf("after opening again the log is %+v", es)
	}
}

func TestFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("file modes say nothing here")
	}
	path, _ := fileWith(t)
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if fi.Mode().Perm() != 0o600 {
		t.Errorf("the log has mode %v, want -rw-------", fi.Mode())
	}
}

// A crash may leave any part of the last line. The other events are preserved,
// and new ones can be appended.
func TestFileDropsTornLastLine(t *testing.T) {
	path, lines := fileWith(t)
	last := lines[2]
	for _, cut := range []int{0, 1, len(last) / 2, len(last) - 1, len(last)} {
		write(t, path, lines[0]+lines[1]+last[:cut]) // without a complete last line
		l := openFile(t, path)
		if got := events(t, l); len(got) != 2 {
			t.Errorf("cut after %d bytes: %d events are left, want 2", cut, len(got))
		}
		say(t, l, "instead")
		l.Close()
		l = openFile(t, path)
		if got := events(t, l); len(got) != 3 || got[2].Seq != 3 || got[2].Message.Text != "instead" {
			t.Errorf("cut after %d bytes: the log does not go on: %+v", cut, got)
		}
		l.Close()
	}
}

func TestFileRefusesDamage(t *testing.T) {
	path, lines := fileWith(t)
	for name, tt := range map[string]struct{ text, want string }{
		"a line that is no JSON":       {lines[0] + "garbage\n" + lines[2] + "\n", "after event 1 is damaged"},
		"a line cut off in the middle": {lines[0] + lines[1][:10] + lines[2] + "\n", "after event 1 is damaged"},
		"an empty line":                {lines[0] + "\n" + lines[1], "after event 1 is damaged"},
		"a missing event":              {lines[0] + lines[2] + "\n", "unexpected event 3 after event 1"},
		"an event twice":               {lines[0] + lines[0], "unexpected event 1 after event 1"},
		"a last line that is garbage":  {lines[0] + "\x00\x00\x00\n", "after event 1 is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, path, tt.text)
			l, err := session.OpenFileLog(path)
			if err == nil {
				l.Close()
				t.Fatal("the damaged log opens")
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %q names neither %q nor the file", err, tt.want)
			}
			if b, _ := os.ReadFile(path); string(b) != tt.text {
				t.Error("a log that was refused was changed")
			}
		})
	}
}

func TestFileIsLocked(t *testing.T) {
	path, _ := fileWith(t)
	first := openFile(t, path)
	if l, err := session.OpenFileLog(path); !errors.Is(err, session.ErrInUse) {
		if err == nil {
			l.Close()
		}
		t.Fatalf("opening an open log: %v, want ErrInUse", err)
	}
	say(t, first, "four") // the failed attempt did not affect the open log
	first.Close()
	second := openFile(t, path)
	if got := events(t, second); len(got) != 4 {
		t.Errorf("%d events, want 4", len(got))
	}
}

func TestFileFailsAfterClose(t *testing.T) {
	l := openFile(t, filepath.Join(t.TempDir(), "1.jsonl"))
	l.Close()
	if err := l.Append(t.Context(), &session.Event{Type: "message"}); err == nil {
		t.Error("appending to a closed log succeeds")
	}
}

func TestOpenFileErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	for _, path := range []string{dir, filepath.Join(dir, "file", "1.jsonl")} {
		if l, err := session.OpenFileLog(path); err == nil {
			l.Close()
			t.Errorf("%s opens", path)
		} else if !strings.HasPrefix(err.Error(), "open session log") {
			t.Errorf("error %q does not say what was tried", err)
		}
	}
}

// The state of a conversation is the same for every log implementation.
func TestStateIsFoldOfLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1.jsonl")
	l := openFile(t, path)
	sh := &shelf{}
	sh.put("csv", "# CSV\n")
	sh.put("report", "# Report\n", "csv")
	sh.put("pdf", "# PDF\n")
	s := open(t, l, sh)
	s.AddMessage(t.Context(), llm.User, "hello")
	load(t, s, "report")
	s.AddMessage(t.Context(), llm.Assistant, "done")
	s.AddMessage(t.Context(), llm.User, "and now?")
	load(t, s, "pdf")
	sh.put("csv", "# CSV, new\n")
	if _, err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Unload(t.Context(), "pdf", "not needed", false); err != nil {
		t.Fatal(err)
	}
	before := s.State()
	l.Close()

	again := open(t, openFile(t, path), sh)
	after := again.State()
	if diff := cmp.Diff(before.Active(), after.Active()); diff != "" || before.Seq != after.Seq || before.Turn != after.Turn {
		t.Errorf("after a restart the state is another (-before +after):\n%s", diff)
	}
	if r := load(t, again, "report"); r.State != session.StateLoaded || len(r.Dependencies) != 1 {
		t.Errorf("csv changed, so loading report again gives %s and brings %v; want csv loaded", r.State, r.Dependencies)
	}
	if r := load(t, again, "report"); r.State != session.StateAlreadyLoaded {
		t.Errorf("then it is %s, want already", r.State)
	}
}
