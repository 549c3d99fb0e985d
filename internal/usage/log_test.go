package usage_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
)

// TestMain is also the other process of TestTwoProcesses.
func TestMain(m *testing.M) {
	if path := os.Getenv("USAGE_TEST_WRITE"); path != "" {
		l := usage.NewLog(path, nil)
		for i := range eachWrites {
			l.Note(load(os.Getenv("USAGE_TEST_NAME"), i))
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const eachWrites = 2000

func load(name string, tokens int) usage.Use {
	return usage.Use{Interface: "mcp", Kind: usage.KindLoad, Skill: name, Key: "here/" + name, Tokens: tokens, Outcome: usage.OK}
}

func read(t testing.TB, path string) *usage.Report {
	t.Helper()
	r, err := usage.Read(usage.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "usage.jsonl") }

func TestFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes")
	}
	path := newPath(t)
	usage.NewLog(path, nil).Note(load("a", 1))
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", filepath.Base(p), got, want)
		}
	}
}

// A line has the fields of a use and no others, however it was made.
func TestLineFormat(t *testing.T) {
	path := newPath(t)
	at := time.Date(2026, 3, 1, 10, 0, 0, 123_456_789, time.FixedZone("", 3600))
	l := usage.NewLog(path, nil)
	l.Note(usage.Use{Time: at, Interface: "mcp", Kind: usage.KindCall, Skill: "s", Key: "here/s", Tool: "s_x__y", Took: 1_234_567 * time.Nanosecond, Outcome: usage.Failed})
	l.Note(usage.Use{Time: at, Interface: "chat", Kind: usage.KindModel, Model: "demo:rules", Usage: &llm.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4}, Outcome: usage.OK})
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-03-01T09:00:00.123Z","face":"mcp","kind":"call","skill":"s","key":"here/s","tool":"s_x__y","outcome":"failed","ms":1.235}
{"time":"2026-03-01T09:00:00.123Z","face":"chat","kind":"model","model":"demo:rules","usage":{"input":1,"cache_read":2,"cache_write":3,"output":4},"outcome":"ok"}
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Untrusted names create neither long lines nor additional ones.
func TestHostileNames(t *testing.T) {
	path := newPath(t)
	l := usage.NewLog(path, nil)
	for _, name := range []string{"a\nb", strings.Repeat("x", 1<<20), strings.Repeat("é", 300), strings.Repeat("\x00", 300), "\xff\xfe", `"}{`} {
		u := load("", 1)
		u.Skill, u.Key, u.Tool = name, "here/"+name, name
		l.Note(u)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for in := bufio.NewScanner(f); in.Scan(); n++ {
		if len(in.Bytes()) > 4095 || !json.Valid(in.Bytes()) {
			t.Errorf("a line of %d bytes: %.80q", len(in.Bytes()), in.Text())
		}
	}
	if r := read(t, path); r.Damaged > 0 || r.Interfaces[0].Loads != n || n < 5 {
		t.Errorf("%d lines, %d damaged, %d loads", n, r.Damaged, r.Interfaces[0].Loads)
	}
}

// Two processes, each with several goroutines, lose nothing and damage nothing.
func TestTwoProcesses(t *testing.T) {
	path := newPath(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "USAGE_TEST_WRITE="+path, "USAGE_TEST_NAME=theirs")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l := usage.NewLog(path, nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range eachWrites / 4 {
				l.Note(load("ours", i))
			}
		})
	}
	all.Wait()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	r := read(t, path)
	if r.Damaged > 0 || len(r.Skills) != 2 {
		t.Fatalf("%d damaged lines, skills %+v", r.Damaged, r.Skills)
	}
	for _, s := range r.Skills {
		if s.Loads != eachWrites {
			t.Errorf("%s: %d loads, want %d", s.Name, s.Loads, eachWrites)
		}
	}
}

// What is full is set aside once, however many write; the newer half stays, and the
// bound holds.
func TestRotation(t *testing.T) {
	const half = 20_000
	path := newPath(t)
	var logs []*usage.Log
	for range 4 { // as of four processes: each opens the lock by itself
		logs = append(logs, usage.NewLogOf(path, half))
	}
	const each = 500
	var all sync.WaitGroup
	for _, l := range logs {
		all.Go(func() {
			for i := range each {
				l.Note(load("a", i))
			}
		})
	}
	all.Wait()
	logs[0].Note(load("last", 1))
	size := int64(0)
	for _, p := range []string{path, path + ".old"} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size < half || size > 2*half+4*4096 {
		t.Errorf("%d bytes are stored, want between %d and %d", size, half, 2*half)
	}
	r := read(t, path)
	if r.Damaged > 0 || r.Interfaces[0].Loads < 100 || r.Interfaces[0].Loads >= 4*each {
		t.Errorf("%d loads, %d damaged", r.Interfaces[0].Loads, r.Damaged)
	}
	newest := false
	for _, s := range r.Skills {
		newest = newest || s.Name == "last"
	}
	if !newest {
		t.Error("the newest use is not stored")
	}
}

func TestClear(t *testing.T) {
	path := newPath(t)
	l := usage.NewLogOf(path, 1000)
	if err := l.Clear(t.Context()); err != nil {
		t.Fatalf("with nothing there: %v", err)
	}
	for i := range 20 {
		l.Note(load("a", i))
	}
	if err := l.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if r := read(t, path); !r.First.IsZero() || len(r.Skills) > 0 {
		t.Errorf("got %+v", r)
	}
	l.Note(load("b", 1))
	if r := read(t, path); len(r.Skills) != 1 || r.Skills[0].Name != "b" {
		t.Errorf("after it: %+v", r.Skills)
	}
}

func TestWriteFailureIsReportedOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "usage.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	l := usage.NewLog(filepath.Join(dir, "usage.jsonl"), slog.New(slog.NewTextHandler(&stderr, nil)))
	for i := range 3 {
		l.Note(load("a", i))
	}
	if n := strings.Count(stderr.String(), "could not record usage"); n != 1 {
		t.Errorf("got %d times: %s", n, stderr.String())
	}
	if _, err := usage.Read(usage.Options{Path: filepath.Join(dir, "usage.jsonl")}); err == nil {
		t.Error("a directory is read as a log")
	}
}

func TestNilLogCountsNothing(t *testing.T) {
	var l *usage.Log
	l.Note(load("a", 1)) // does not panic
}

func BenchmarkNote(b *testing.B) {
	buffered := usage.NewBufferedLog(newPath(b), 200*time.Millisecond, nil)
	defer buffered.Close()
	for name, l := range map[string]*usage.Log{"at once": usage.NewLog(newPath(b), nil), "buffered": buffered} {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					l.Note(usage.Use{Interface: "mcp", Kind: usage.KindCall, Tool: "github__get_issue", Took: 3 * time.Millisecond, Outcome: usage.OK})
				}
			})
		})
	}
}

// A whole log: two halves of calls and loads.
func BenchmarkRead(b *testing.B) {
	path := newPath(b)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.Fatal(err)
	}
	for _, p := range []string{path + ".old", path} {
		var out bytes.Buffer
		for i := 0; out.Len() < usage.MaxBytes/2; i++ {
			fmt.Fprintf(&out, `{"time":"2026-03-01T09:00:00.123Z","face":"mcp","kind":"call","skill":"s%d","key":"here/s%d","tool":"s%d_x__y","outcome":"ok","ms":%d.25}`+"\n", i%200, i%200, i%500, i%100)
		}
		if err := os.WriteFile(p, out.Bytes(), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(usage.MaxBytes)
	for b.Loop() {
		if r, err := usage.Read(usage.Options{Path: path}); err != nil || r.Damaged > 0 {
			b.Fatal(err, r.Damaged)
		}
	}
}
