package installed_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/skill"
)

func TestLockfileTextIsStable(t *testing.T) {
	e := entry()
	e.Key, e.From.URL = "abc", "https://example.com/a?x=1&y=<2>"
	e.Files = map[string]string{"a b/c.md": strings.Repeat("0", 64), "SKILL.md": strings.Repeat("f", 64)}
	e.Digest = skill.Manifest{{Path: "SKILL.md", SHA256: strings.Repeat("f", 64)}, {Path: "a b/c.md", SHA256: strings.Repeat("0", 64)}}.Digest()
	got, err := (&installed.Lockfile{Skills: map[string]installed.Entry{"pdf": e}}).Encode()
	must(t, err)
	want := `{
  "version": 1,
  "skills": {
    "pdf": {
      "from": {
        "kind": "git",
        "url": "https://example.com/a?x=1&y=<2>",
        "dir": "skills/a",
        "ref": "main"
      },
      "ref": "refs/heads/main",
      "commit": "` + strings.Repeat("a1", 20) + `",
      "skillVersion": "1.2",
      "digest": "` + e.Digest + `",
      "key": "abc",
      "files": {
        "SKILL.md": "` + strings.Repeat("f", 64) + `",
        "a b/c.md": "` + strings.Repeat("0", 64) + `"
      }
    }
  }
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// lockText is a lock of one good skill, in one line a field.
func lockText(t testing.TB) string {
	t.Helper()
	dir := installed.Open(t.TempDir())
	put(t, dir, "pdf@1")
	data, err := os.ReadFile(filepath.Join(dir.Path(), installed.LockfileName))
	must(t, err)
	return string(data)
}

func TestInvalidLockfileIsRefused(t *testing.T) {
	good := lockText(t)
	if _, err := installed.ParseLockfile([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, old, new, want string }{
		{"later version", `"version": 1`, `"version": 3`, "unsupported version 3; update loadout"},
		{"no version", `"version": 1,`, ``, "version is missing"},
		{"no skills", good, `{"version":1}`, "line 1: skills is missing"},
		{"no object", good, `[]`, "not a JSON object"},
		{"cut", good[len(good)-3:], "", "not JSON: unexpected end of JSON input"},
		{"more after it", good, good + "{}", "not JSON: invalid character '{' after top-level value"},
		{"empty", good, "", "not JSON: unexpected end of JSON input"},
		{"conflict", `    "pdf": {`, "<<<<<<< HEAD\n    \"pdf\": {", "line 4: contains Git conflict markers"},
		{"not UTF-8", `1.2`, "\xff", "not UTF-8"},
		{"unknown field", `"version": 1`, "\"version\": 1,\n  \"later\": {\"a\": [1]}", "line 3: later is unknown"},
		{"unknown field of a skill", `"skillVersion"`, `"Since"`, `line 13: skills.pdf."Since" is unknown`},
		{"twice", `"skillVersion": "1.2"`, `"ref": "x"`, "line 13: skills.pdf.ref is repeated"},
		{"name leads out", `"pdf"`, `"../pdf"`, `skills."../pdf" is not a valid name of a skill directory`},
		{"name is reserved", `"pdf"`, `"nul"`, `skills.nul is not a valid name of a skill directory`},
		{"path leads out", `"scripts/run.sh"`, `"../run.sh"`, `skills.pdf.files."../run.sh" is not a valid path: path leads out of the skill with ..`},
		{"absolute path", `"scripts/run.sh"`, `"/run.sh"`, `skills.pdf.files."/run.sh" is not a valid path`},
		{"path with a drive", `"scripts/run.sh"`, `"C:/run.sh"`, `skills.pdf.files."C:/run.sh" is not a valid path`},
		{"path with an escape", `"scripts/run.sh"`, `"\u001b[2J"`, `is not a valid path`},
		{"no hash", `"scripts/run.sh": "`, `"scripts/run.sh": "A`, `skills.pdf.files."scripts/run.sh" is not a SHA-256 in lower-case hex`},
		{"another digest", `"sha256:`, `"sha256:0`, "skills.pdf.digest does not match the files"},
		{"another algorithm", `"sha256:`, `"md5:`, "skills.pdf.digest does not match the files"},
		{"wrong type", `"1.2"`, `1.2`, "line 13: skills.pdf.skillVersion is not a string"},
		{"lines in a text", `"1.2"`, `"1\n2"`, "line 13: skills.pdf.skillVersion is longer than 4096 bytes, or more than one line"},
		{"kind", `"git"`, `"ftp"`, `line 10: skills.pdf.from.kind is "ftp", which is not a valid kind of location`},
		{"directory leads out", `"skills/a"`, `"a/../../b"`, "skills.pdf.from.dir is outside the source of the skill"},
		{"password", `https://`, `https://me:hunter2@`, "skills.pdf.from.url must not contain a password"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(good, tt.old, tt.new, 1)
			_, err := installed.ParseLockfile([]byte(text))
			e, ok := errors.AsType[*installed.LockfileError](err)
			if !ok || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if strings.ContainsAny(err.Error(), "\x1b\n") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error has what it must not: %q", err)
			}
			if e.Newer != (tt.name == "later version") || e.Conflict != (tt.name == "conflict") {
				t.Errorf("Newer is %v, Conflict %v", e.Newer, e.Conflict)
			}
		})
	}
}

// A lockfile has the version that can hold it. Programs that know no counters
// refuse the higher one by its number.
func TestLockfileVersions(t *testing.T) {
	e := entry()
	e.Key = "example.com+1"
	e.Files = map[string]string{"SKILL.md": strings.Repeat("0", 64)}
	e.Digest = skill.Manifest{{Path: "SKILL.md", SHA256: strings.Repeat("0", 64)}}.Digest()
	encode := func(e installed.Entry) string {
		t.Helper()
		data, err := (&installed.Lockfile{Skills: map[string]installed.Entry{"pdf": e}}).Encode()
		must(t, err)
		lock, err := installed.ParseLockfile(data)
		must(t, err)
		if diff := cmp.Diff(e, lock.Skills["pdf"]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return string(data)
	}
	if text := encode(e); !strings.Contains(text, `"version": 1`) || strings.Contains(text, "ounter") || strings.Contains(text, "signed") {
		t.Errorf("without counters:\n%s", text)
	}
	e.Counter, e.HighestCounter, e.Signed = 2, 3, time.Date(2026, 11, 23, 19, 15, 30, 0, time.UTC)
	text := encode(e)
	if !strings.Contains(text, `"version": 2`) {
		t.Errorf("with counters:\n%s", text)
	}
	for _, tt := range []struct{ old, new, want string }{
		{`"version": 2`, `"version": 1`, "skills.pdf.counter is unknown"},
		{`"counter": 2`, `"counter": 4`, "skills.pdf.highestCounter is lower than counter"},
		{`"counter": 2`, `"counter": -2`, "skills.pdf.counter is not an integer"},
		{`"counter": 2`, `"counter": 2.5`, "skills.pdf.counter is not an integer"},
		{`"counter": 2`, `"counter": "2"`, "skills.pdf.counter is not an integer"},
		{`"counter": 2`, `"counter": [2]`, "skills.pdf.counter is not an integer"},
		{`"highestCounter": 3`, `"highestCounter": 9007199254740992`, "skills.pdf.highestCounter is not an integer"},
		{`19:15:30Z`, `19:15:30+00:00`, "skills.pdf.signed is not a time in UTC"},
		{`"key": "example.com+1",`, ``, "skills.pdf.counter requires key"},
	} {
		_, err := installed.ParseLockfile([]byte(strings.Replace(text, tt.old, tt.new, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.new, err, tt.want)
		}
	}
}

func TestAllErrorsAreReported(t *testing.T) {
	text := lockText(t)
	text = strings.Replace(text, `"pdf"`, `"P D F"`, 1)
	text = strings.Replace(text, `"git"`, `"ftp"`, 1)
	text = strings.Replace(text, `"SKILL.md"`, `"../SKILL.md"`, 1)
	_, err := installed.ParseLockfile([]byte(text))
	e, ok := errors.AsType[*installed.LockfileError](err)
	if !ok || len(e.Problems) != 4 { // the digest does not match the files, too
		t.Fatalf("got %v", err)
	}
	for i, line := range []int{4, 10, 16} {
		if e.Problems[i].Line != line {
			t.Errorf("problem %d is on line %d, want %d", i, e.Problems[i].Line, line)
		}
	}
}

func TestLockfileLimits(t *testing.T) {
	var many strings.Builder
	many.WriteString(`{"version":1,"skills":{`)
	for i := range installed.MaxSkills + 50 {
		fmt.Fprintf(&many, `"s%d":{},`, i)
	}
	text := strings.TrimSuffix(many.String(), ",") + "}}"
	_, err := installed.ParseLockfile([]byte(text))
	e, ok := errors.AsType[*installed.LockfileError](err)
	if !ok || len(e.Problems) != installed.MaxProblems || e.Omitted < installed.MaxSkills {
		t.Errorf("of too many skills: %v", err)
	}
	if _, err := installed.ParseLockfile(bytes.Repeat([]byte(" "), installed.MaxLockfileBytes+1)); err == nil {
		t.Error("a lock of too many bytes was read")
	}
	if _, err := installed.ParseLockfile([]byte(`{"version":1,"skills":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}")); err == nil {
		t.Error("a lock of too many levels was read")
	}
}

func TestLockfileMustBeRegular(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, path string){
		"link":      func(t *testing.T, path string) { link(t, "elsewhere", path) },
		"directory": func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o755)) },
		"pipe":      func(t *testing.T, path string) { pipe(t, path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "elsewhere", lockText(t))
			make(t, filepath.Join(dir, installed.LockfileName))
			if lock, err := installed.Open(dir).Lockfile(); err == nil {
				t.Errorf("it was read: %v", lock)
			}
			if name, err := installed.Open(dir).FindName("pdf"); err == nil {
				t.Errorf("found as %q", name)
			}
			if c, err := installed.Open(dir).Begin(t.Context()); err == nil {
				c.Close()
				t.Error("a change began")
			}
			if _, err := os.Lstat(filepath.Join(dir, installed.Staging)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left", installed.Staging)
			}
		})
	}
}

func FuzzLock(f *testing.F) {
	f.Add([]byte(lockText(f)))
	f.Add([]byte(`{"version":1,"skills":{}}`))
	f.Add([]byte(`{"skills":{"a":{"files":{"../a":"0"},"from":{"dir":"/"}}},"version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		lock, err := installed.ParseLockfile(data)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\x1b\n\x00") {
				t.Errorf("the error has control characters: %q", err)
			}
			return
		}
		for name, e := range lock.Skills {
			if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
				t.Errorf("name %q", name)
			}
			for p := range e.Files {
				if !filepath.IsLocal(filepath.FromSlash(p)) {
					t.Errorf("path %q", p)
				}
			}
		}
		text, err := lock.Encode()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := installed.ParseLockfile(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lock, again); diff != "" {
			t.Errorf("read again, it is another (-first +again):\n%s", diff)
		}
	})
}

// A lock of thousands of files takes milliseconds to parse, and is read for every skill
// that is verified.
func TestSameLockfileIsParsedOnce(t *testing.T) {
	dir := installed.Open(t.TempDir())
	put(t, dir, "pdf@1", "csv@1")
	verify := func() *installed.Lockfile {
		for _, name := range []string{"pdf", "csv"} {
			_, err := dir.Verify(t.Context(), name)
			must(t, err)
		}
		return dir.Parsed()
	}
	first := verify()
	if again := verify(); again != first {
		t.Error("it was parsed again")
	}
	put(t, installed.Open(dir.Path()), "png@1") // as another process does
	if then := verify(); then == first || len(then.Skills) != 3 {
		t.Errorf("after a change by another it has %d skills", len(then.Skills))
	}
}

func TestReadReturnsCurrentLockfile(t *testing.T) {
	dir := installed.Open(t.TempDir())
	file := filepath.Join(dir.Path(), installed.LockfileName)
	count := func() int {
		lock, err := dir.Lockfile()
		must(t, err)
		return len(lock.Skills)
	}
	if n := count(); n != 0 {
		t.Errorf("without a file it has %d skills", n)
	}
	must(t, os.WriteFile(file, nil, 0o644))
	if _, err := dir.Lockfile(); !isLockError(err) {
		t.Errorf("of an empty file: %v", err)
	}
	must(t, os.Remove(file))
	put(t, dir, "pdf@1")
	if n := count(); n != 1 {
		t.Errorf("after a change it has %d skills", n)
	}
	must(t, os.WriteFile(file, []byte("{}"), 0o644))
	if _, err := dir.Lockfile(); !isLockError(err) {
		t.Errorf("of a file that says nothing: %v", err)
	}
	must(t, os.Remove(file))
	if n := count(); n != 0 {
		t.Errorf("after the file is gone it has %d skills", n)
	}
}

func isLockError(err error) bool {
	_, ok := errors.AsType[*installed.LockfileError](err)
	return ok
}

func TestLockfileIsACopy(t *testing.T) {
	dir := installed.Open(t.TempDir())
	put(t, dir, "pdf@1", "csv@1")
	lock, err := dir.Lockfile()
	must(t, err)
	lock.Skills["pdf"].Files["SKILL.md"] = "mine"
	delete(lock.Skills, "csv")
	again, err := dir.Lockfile()
	must(t, err)
	if _, ok := again.Skills["csv"]; !ok || again.Skills["pdf"].Files["SKILL.md"] == "mine" {
		t.Error("what one caller did to it, the next one sees")
	}
	if found, err := dir.Verify(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("verify found %v, %v", texts(found), err)
	}
}
