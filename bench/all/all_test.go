//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// inBench changes to the directory bench, in which the command runs.
func inBench(t *testing.T) {
	t.Helper()
	t.Chdir("..")
}

func TestReadmeShowsResults(t *testing.T) {
	inBench(t)
	all, err := readResults()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	want, err := updateReadme(text, all)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Error("README.md differs from results.json; run in bench: go run ./all -readme")
	}
}

// The figures that the program is held to. Each has a row with a goal.
func TestGoalsHaveRows(t *testing.T) {
	want := strings.Fields(`size build version mcp-17 mcp-10000 run run-cpu true-native python-native true-bwrap script-first script-next
		scan restart rescan activation call-stdio call-http hub-idle`)
	rows := map[string]row{}
	for _, r := range allRows() {
		if _, ok := rows[r.key]; ok {
			t.Errorf("two rows have the key %s", r.key)
		}
		rows[r.key] = r
		if _, ok := programs[r.program]; !ok {
			t.Errorf("row %s: unknown program %q", r.key, r.program)
		}
	}
	for _, key := range want {
		if r := rows[key]; r.goal == 0 && r.below == "" {
			t.Errorf("no goal in row %s", key)
		}
	}
}

func TestResultsHaveRows(t *testing.T) {
	inBench(t)
	all, err := readResults()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range allRows() {
		delete(all, r.key)
	}
	for key := range all {
		t.Errorf("result %s has no row", key)
	}
}

// A part without results shows the row, an older result keeps its date, and a peer that was not
// there is named.
func TestFormatSubject(t *testing.T) {
	s := subject{"Trees", []row{
		{key: "oak", figure: "oak", goal: 5, peers: map[string]string{"elm": "elm"}},
		{key: "ash", figure: "ash", of: ratio, goal: 2},
		{key: "fir", figure: "fir", below: "elm", peers: map[string]string{"elm": "elm"}},
		{key: "yew", figure: "yew", goal: 7},
	}}
	all := results{
		"oak": {Unit: "ms", figure: figure{4, 3, 6, 9}, Limit: &figure{Median: 1}, Date: "2026-01-02", Commit: "abc", Load: "0.5", Command: "plant -n 1", Machine: "m1"},
		"ash": {Unit: "×", figure: figure{3, 2, 4, 9}, Limit: &figure{Median: 1500}, LimitUnit: "µs", Date: "2026-01-03", Commit: "def+", Load: "0.1", Command: "plant -n 2", Machine: "m2"},
		"fir": {Unit: "µs", figure: figure{2000, 2000, 2000, 1}, Peers: map[string]*figure{"elm": {Median: 3000}}, Date: "2026-01-03", Commit: "def+", Load: "0.1", Command: "plant -n 2", Machine: "m2"},
	}
	got := s.format(all, listMachines(all))
	for _, want := range []string{
		"| oak | 4 ms | 3 ms – 6 ms | 1 ms | elm not available | ≤ 5 ms: met | 2026-01-02, abc, A, load 0.5, [1] |",
		"| ash | 3 × | 2 × – 4 × | 1.50 ms |  | ≤ 2 ×: **missed** | 2026-01-03, def+, B, load 0.1, [2] |",
		"| fir | 2 ms |  |  | elm 3 ms | below elm: met | 2026-01-03, def+, B, load 0.1, [2] |",
		"| yew | not measured |  |  |  | ≤ 7 |  |",
		"1. `go run ./plant -n 1`\n2. `go run ./plant -n 2`\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
}

// A process whose parent has exited is found, killed and reported.
func TestEndOrphans(t *testing.T) {
	if err := adoptOrphans(); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("sh", "-c", "sleep 1000 &").Run(); err != nil {
		t.Fatal(err)
	}
	if err := endOrphans(0); err == nil || !strings.Contains(err.Error(), "left process") {
		t.Errorf("error %v, want the process", err)
	}
	if left, err := measure.Children(); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := endOrphans(0); err != nil {
		t.Errorf("without processes: %v", err)
	}
}

func TestFigureOf(t *testing.T) {
	s := samples{}
	for _, pass := range [][2][]float64{{{4, 9}, {2, 3}}, {{8, 8}, {4, 1}}} {
		s.add(measure.Record{Name: "ours", Unit: "ms", Samples: pass[0]})
		s.add(measure.Record{Name: "limit", Unit: "ms", Samples: pass[1]})
	}
	for of, want := range map[measureOf]figure{
		value: {8, 4, 9, 4},
		added: {5, 1, 6, 4}, // the median of the limit is 3
		ratio: {3, 2, 8, 4},
	} {
		if got, err := s.figureOf("ours", "limit", of); err != nil || *got != want {
			t.Errorf("%d: %v, %v, want %v", of, got, err, want)
		}
	}
	if _, err := s.figureOf("theirs", "limit", value); err == nil {
		t.Error("a missing record has a figure")
	}
}
