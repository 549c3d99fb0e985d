package usage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
)

func at(minute int) time.Time { return time.Date(2026, 3, 1, 10, minute, 0, 0, time.UTC) }

// noted is a log with uses of two skills, tools, a script and a model.
func noted(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	l := usage.NewLog(path, nil)
	ms := time.Millisecond
	for i, u := range []usage.Use{
		{Interface: "mcp", Kind: usage.KindLoad, Skill: "pdf", Key: "user/pdf", Tokens: 1000, Outcome: usage.OK},
		{Interface: "mcp", Kind: usage.KindFile, Skill: "pdf", Key: "user/pdf", Tokens: 200, Outcome: usage.OK},
		{Interface: "chat", Kind: usage.KindLoad, Skill: "pdf", Key: "user/pdf", Tokens: 1000, Outcome: usage.OK},
		{Interface: "mcp", Kind: usage.KindLoad, Skill: "broken", Key: "user/broken", Outcome: usage.Failed},
		{Interface: "mcp", Kind: usage.KindLoad, Outcome: usage.Failed}, // of no skill there is
		{Interface: "run", Kind: usage.KindScript, Skill: "pdf", Key: "user/pdf", Tool: "scripts/a.py", Took: 40 * ms, Outcome: usage.OK},
		{Interface: "mcp", Kind: usage.KindScript, Skill: "pdf", Key: "user/pdf", Outcome: usage.Refused},
		{Interface: "mcp", Kind: usage.KindCall, Tool: "own__x", Took: 30 * ms, Outcome: usage.OK},
		{Interface: "mcp", Kind: usage.KindCall, Tool: "own__x", Took: 10 * ms, Outcome: usage.OK},
		{Interface: "chat", Kind: usage.KindCall, Tool: "own__x", Took: 20 * ms, Outcome: usage.Failed},
		{Interface: "mcp", Kind: usage.KindCall, Tool: "own__x", Outcome: usage.Refused},
		{Interface: "mcp", Kind: usage.KindCall, Tool: "pdf_s__y", Skill: "pdf", Key: "user/pdf", Took: 5 * ms, Outcome: usage.OK},
		{Interface: "chat", Kind: usage.KindModel, Model: "v:m", Usage: &llm.Usage{Input: 10, CacheWrite: 100, Output: 5}, Outcome: usage.OK},
		{Interface: "chat", Kind: usage.KindModel, Model: "v:m", Usage: &llm.Usage{Input: 20, CacheRead: 100, Output: 7}, Outcome: usage.OK},
	} {
		u.Time = at(i)
		l.Note(u)
	}
	return path
}

func TestReport(t *testing.T) {
	got := read(t, noted(t))
	want := &usage.Report{
		First: at(0),
		Interfaces: []usage.Interface{
			{Name: "mcp", Counts: usage.Counts{Loads: 3, Files: 1, Scripts: 1, Calls: 4, Tokens: 1200, Failures: 2, Refused: 2, Last: at(11)}},
			{Name: "chat", Counts: usage.Counts{Loads: 1, Calls: 1, Tokens: 1000, Failures: 1, Last: at(13)}, Answers: 2},
			{Name: "run", Counts: usage.Counts{Scripts: 1, Last: at(5)}},
		},
		Skills: []usage.Skill{
			{Name: "pdf", Key: "user/pdf", Interfaces: map[string]int{"mcp": 4, "chat": 1, "run": 1},
				Counts: usage.Counts{Loads: 2, Files: 1, Scripts: 2, Calls: 1, Tokens: 2200, Refused: 1, Last: at(11)}},
			{Name: "broken", Key: "user/broken", Interfaces: map[string]int{"mcp": 1}, Counts: usage.Counts{Loads: 1, Failures: 1, Last: at(3)}},
		},
		Tools: []usage.Tool{
			{Name: "own__x", Calls: 4, Errors: 1, Refused: 1, Measured: 3, P50: 20, P95: 30, Last: at(10)},
			{Name: "pdf_s__y", Skill: "pdf", Key: "user/pdf", Calls: 1, Measured: 1, P50: 5, P95: 5, Last: at(11)},
		},
		Scripts: []usage.Tool{{Name: "scripts/a.py", Skill: "pdf", Key: "user/pdf", Calls: 1, Measured: 1, P50: 40, P95: 40, Last: at(5)}},
		Models:  []usage.Model{{Name: "v:m", Answers: 2, Usage: llm.Usage{Input: 30, CacheRead: 100, CacheWrite: 100, Output: 12}, Last: at(13)}},
		Unknown: 1,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(usage.Tool{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if x, ok := got.Tool("own__x"); !ok || x.P95 != 30 {
		t.Errorf("the tool by its name: %+v, %t", x, ok)
	}
	if _, ok := got.Tool("own__z"); ok {
		t.Error("a tool that was never called has times")
	}
}

func TestReportSince(t *testing.T) {
	r, err := usage.Read(usage.Options{Path: noted(t), Since: at(10)})
	if err != nil {
		t.Fatal(err)
	}
	if !r.First.Equal(at(10)) || len(r.Skills) != 1 || r.Skills[0].Calls != 1 || len(r.Scripts) != 0 || r.Unknown != 0 {
		t.Errorf("got %+v", r)
	}
}

func TestEmptyReport(t *testing.T) {
	r := read(t, newPath(t))
	if diff := cmp.Diff(&usage.Report{Interfaces: []usage.Interface{}, Skills: []usage.Skill{}, Tools: []usage.Tool{}, Scripts: []usage.Tool{}, Models: []usage.Model{}}, r); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A line that is damaged, not ours, or could not be, is passed over and counted; those
// around it are read.
func TestDamagedLines(t *testing.T) {
	good := `{"time":"2026-03-01T09:00:00Z","face":"mcp","kind":"load","skill":"a","key":"u/a","tokens":5,"outcome":"ok"}`
	for name, line := range map[string]string{
		"no JSON":           `hello`,
		"half of one":       good[:40],
		"two in one":        good[:40] + good,
		"empty":             ``,
		"another value":     `[1]`,
		"no time":           strings.Replace(good, "time", "tame", 1),
		"no face":           strings.Replace(good, `"mcp"`, `""`, 1),
		"another kind":      strings.Replace(good, `"load"`, `"loads"`, 1),
		"another outcome":   strings.Replace(good, `"ok"`, `"fine"`, 1),
		"tokens below zero": strings.Replace(good, `5`, `-5`, 1),
		"endless tokens":    strings.Replace(good, `5`, `1e30`, 1),
		"time below zero":   strings.Replace(good, `"tokens"`, `"ms":-1,"tokens"`, 1),
		"endless time":      strings.Replace(good, `"tokens"`, `"ms":1e300,"tokens"`, 1),
		"model of no name":  strings.Replace(good, `"load"`, `"model"`, 1),
		"too long":          strings.Replace(good, `"a"`, `"`+strings.Repeat("a", 5000)+`"`, 1),
		"far too long":      strings.Repeat("a", 200_000),
	} {
		path := newPath(t)
		write(t, path, good+"\n"+line+"\n"+good+"\n")
		r := read(t, path)
		if r.Damaged != 1 || len(r.Skills) != 1 || r.Skills[0].Loads != 2 {
			t.Errorf("%s: %d damaged, skills %+v", name, r.Damaged, r.Skills)
		}
	}
	path := newPath(t)
	write(t, path, good+"\n"+good) // the last one is not whole
	if r := read(t, path); r.Damaged != 1 || r.Skills[0].Loads != 1 {
		t.Errorf("without its end: %+v", r)
	}
	// The longest line that is read has 4096 bytes.
	long := strings.Replace(good, `"a"`, `"`+strings.Repeat("a", 4096-len(good))+`"`, 1)
	for _, line := range []string{long, strings.Replace(long, "aa", "aaa", 1)} {
		write(t, path, line+"\n")
		if r, whole := read(t, path), len(line)+1 <= 4096; whole != (r.Damaged == 0) || whole != (len(r.Skills) == 1) {
			t.Errorf("a line of %d bytes: %+v", len(line)+1, r)
		}
	}
	// What a later version adds is left out.
	write(t, path, strings.Replace(good, `"face"`, `"more":{"a":[1,"}"]},"face"`, 1)+"\n")
	if r := read(t, path); r.Damaged != 0 || r.Skills[0].Tokens != 5 {
		t.Errorf("with a field more: %+v", r)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// While the log is set aside between two looks, nothing is counted twice.
func TestRotatedFilesMayBeTheSame(t *testing.T) {
	path := newPath(t)
	usage.NewLog(path, nil).Note(load("a", 1))
	if err := os.Link(path, path+".old"); err != nil {
		t.Skip(err)
	}
	if r := read(t, path); r.Skills[0].Loads != 1 {
		t.Errorf("%d loads, want 1", r.Skills[0].Loads)
	}
}

// FuzzRead checks that any log is read to its end, and that recorded lines are read
// unchanged.
func FuzzRead(f *testing.F) {
	f.Add("", "pdf", 5, int64(1))
	f.Add("{\n", `a"b`, 0, int64(0))
	f.Add(`{"time":"2026-03-01T09:00:00Z","face":"mcp","kind":"call","outcome":"ok"}`+"\n", "é\\u0041", 1, int64(7))
	f.Fuzz(func(t *testing.T, before, name string, tokens int, elapsed int64) {
		if tokens < 0 || tokens > 1<<40 || elapsed < 0 || elapsed > int64(24*time.Hour) {
			t.Skip("no use")
		}
		path := newPath(t)
		write(t, path, before+"\n")
		b := read(t, path)
		l := usage.NewLog(path, nil)
		u := usage.Use{Time: at(0), Interface: "fuzz", Kind: usage.KindScript, Skill: "s", Key: "fuzz/s", Tool: "scripts/" + name, Tokens: tokens, Took: time.Duration(elapsed), Outcome: usage.OK}
		l.Note(u)
		r := read(t, path)
		if r.Damaged != b.Damaged {
			t.Fatalf("%d lines are damaged, and were %d before %q", r.Damaged, b.Damaged, name)
		}
		for _, s := range r.Scripts {
			if s.Key == "fuzz/s" && s.Calls == 1 {
				return
			}
		}
		t.Errorf("a script %q is not in %+v", name, r.Scripts)
	})
}
