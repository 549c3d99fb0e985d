package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write writes files, by path, into a new directory.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	success = `{"id": "s", "status": "SUCCESS"}`
	failure = `{"id": "f", "status": "FAILURE", "errorMessage": "no\nanswer"}`
	skipped = `{"id": "k", "status": "SKIPPED", "errorMessage": "later"}`
	note    = `{"id": "i", "status": "INFO"}`
)

func TestReport(t *testing.T) {
	at := func(name string) string { return name + "-2026-11-29T00-00-00-000Z/checks.json" }
	results := map[string]string{
		at("server-good"): "[" + success + "," + note + "," + success + "]", at("server-bad"): "[" + success + "," + failure + "]", at("auth/known"): "[" + failure + "]",
		at("waits"): "[" + success + "," + skipped + "]", at("other"): "[" + success + "]", at("idle"): "[" + note + "]",
	}
	for _, tt := range []struct {
		name, scored, expected string
		figures                string
		problems               []string
	}{
		{"all count", "", "", "3/6 scenarios, 5 checks", []string{"FAILURE auth/known f: no\nanswer", "FAILURE bad f: no\nanswer", "NOTHING CHECKED auth/known", "NOTHING CHECKED idle", "SKIPPED waits k: later"}},
		{"some count", "good bad waits absent", "server: [auth/known, 'bad:f', idle, 'good:s', 'gone:x']\nskipped: ['waits:k']\n", "2/4 scenarios, 4 checks; expected to fail: 1; not scored: 2/3",
			[]string{"NOT RUN absent", "NOTHING CHECKED idle", "PASSES NOW, expected to fail: good:s", "PASSES NOW, expected to fail: idle"}},
	} {
		dir := write(t, results)
		lists := write(t, map[string]string{"scored": tt.scored, "expected": tt.expected})
		scored, expected := "", ""
		if tt.scored != "" {
			scored, expected = filepath.Join(lists, "scored"), filepath.Join(lists, "expected")
		}
		r, err := newRun(scored, expected)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.read(dir); err != nil {
			t.Fatal(err)
		}
		if got := r.figures(); got != tt.figures {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.figures)
		}
		if got := r.problems(); !slices.Equal(got, tt.problems) {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.problems, "\n"))
		}
	}
}

func TestUnreadableResults(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no results": {}, "another name": {"good/checks.json": "[]"}, "no JSON": {"good-2026-11-29T00-00-00-000Z/checks.json": "x"},
	} {
		if err := (&run{scenarios: map[string][]check{}}).read(write(t, files)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	lists := write(t, map[string]string{"bad": "server: {"})
	for _, paths := range [][2]string{{filepath.Join(lists, "none"), ""}, {"", filepath.Join(lists, "none")}, {"", filepath.Join(lists, "bad")}} {
		if _, err := newRun(paths[0], paths[1]); err == nil {
			t.Errorf("%q: no error", paths)
		}
	}
}

func TestCut(t *testing.T) {
	for in, want := range map[string]string{"": "", " a \n b": "a b", "éééé": "éééé", "ééééé": "ééé…"} {
		if got := cut(in, 4); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
