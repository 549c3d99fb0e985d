//go:build linux

// Package growth compares what costs users something on every run with the figures in
// testdata/baseline.json: sizes and counts, which are the same on every machine, and no times.
//
// A figure may grow by 5 %. To accept more, or to record less, run
//
//	go test ./growth -update
//
// in the directory bench, and give the reason in the commit.
package growth

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/testprogram"
	"github.com/loadout-dev/loadout/skill"
)

var update = flag.Bool("update", false, "write testdata/baseline.json")

const baselineFile = "testdata/baseline.json"

// figure is a named figure of the baseline.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

func TestFiguresDoNotGrow(t *testing.T) {
	figures := append(programFigures(t), allocationFigures(t)...)
	if *update {
		text, err := json.MarshalIndent(figures, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(baselineFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(baselineFile)
	if err != nil {
		t.Fatal(err)
	}
	var baseline []figure
	if err := json.Unmarshal(text, &baseline); err != nil {
		t.Fatalf("read %s: %v", baselineFile, err)
	}
	known := make(map[string]float64)
	for _, f := range baseline {
		known[f.Name] = f.Value
	}
	for _, f := range figures {
		old, ok := known[f.Name]
		if !ok {
			t.Errorf("%s is %.0f, and not in %s; run the test with -update", f.Name, f.Value, baselineFile)
			continue
		}
		delete(known, f.Name)
		t.Logf("%s: %.0f, baseline %.0f (%+.1f %%)", f.Name, f.Value, old, 100*(f.Value/old-1))
		if f.Value > old*1.05 {
			t.Errorf("%s grew from %.0f to %.0f, by more than 5 %%; find the cause, or run the test with -update and give the reason in the commit", f.Name, old, f.Value)
		}
	}
	for name := range known {
		t.Errorf("%s is in %s, and not measured; run the test with -update", name, baselineFile)
	}
}

var initLine = regexp.MustCompile(`(?m)^init .* (\d+) bytes, (\d+) allocs$`)

// programFigures measures the stripped program, its initialization and its dependencies.
func programFigures(t *testing.T) []figure {
	t.Helper()
	program, err := testprogram.Program{Package: "cmd/loadout"}.Build()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "version")
	cmd.Env = []string{"GODEBUG=inittrace=1", "HOME=" + t.TempDir()}
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, trace.String())
	}
	var bytes, allocs float64
	lines := initLine.FindAllStringSubmatch(trace.String(), -1)
	if len(lines) < 100 {
		t.Fatalf("the program reports the initialization of %d packages", len(lines))
	}
	for _, m := range lines {
		bytes += number(t, m[1])
		allocs += number(t, m[2])
	}
	packages := list(t, "{{.ImportPath}}")
	modules := list(t, "{{with .Module}}{{.Path}}{{end}}")
	return []figure{
		{"size of the stripped program in bytes", float64(info.Size())},
		{"bytes allocated by package initialization", bytes},
		{"allocations of package initialization", allocs},
		{"linked packages", packages},
		{"linked modules", modules},
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// list returns how many different values a format has over all packages that the program links.
func list(t *testing.T, format string) float64 {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", format, "./cmd/loadout")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		seen[line] = true
	}
	return float64(len(seen))
}

// allocationFigures counts allocations of what happens most often.
func allocationFigures(t *testing.T) []figure {
	t.Helper()
	ctx := t.Context()
	files := fstest.MapFS{"long/SKILL.md": {Data: []byte("---\nname: long\ndescription: Long instructions.\n---\n" + strings.Repeat("Read the next line with care.\n", 15_000/30))}}
	dir := t.TempDir()
	for i := range 500 {
		name := fmt.Sprintf("report-%d", i)
		text := fmt.Sprintf("---\nname: %s\ndescription: Writes report %d of the harbour, with tides and depths. Use for reports.\n---\n# Report\n\nWrite it step by step.\n", name, i)
		files[name+"/SKILL.md"] = &fstest.MapFile{Data: []byte(text)}
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A skill that changed within the last two seconds is read again.
	old := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, old, old))
	})
	if err != nil {
		t.Fatal(err)
	}
	rt := open(ctx, t, catalog.NewFS("memory", catalog.User, files))
	scanned := open(ctx, t, catalog.NewDir("files", catalog.User, dir, nil))
	few := filepath.Join(t.TempDir(), "few")
	for name, text := range map[string]string{
		"long/SKILL.md": string(files["long/SKILL.md"].Data), "long/scripts/run.py": "print()\n", "long/scripts/check.sh": "exit 0\n",
		"long/references/a.md": "A\n", "long/references/b.md": "B\n", "long/assets/c.txt": "C\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(few, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(few, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	opened := open(ctx, t, catalog.NewDir("few", catalog.User, few, nil))
	file := files["long/SKILL.md"].Data
	count := func(name string, f func() error) figure {
		return figure{"allocations of " + name, testing.AllocsPerRun(20, func() {
			if err := f(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		})}
	}
	return []figure{
		count("parsing a SKILL.md of 15 kB", func() error {
			if _, found := skill.ParseBytes(file, "SKILL.md", "long"); !found.Valid() {
				return fmt.Errorf("%v", found)
			}
			return nil
		}),
		count("loading a skill of 15 kB in a new session", func() error {
			s, err := rt.NewSession(ctx, nil)
			if err != nil {
				return err
			}
			_, err = s.Load(ctx, "long", nil)
			return err
		}),
		count("loading a skill of 15 kB and 6 files from a directory in a new session", func() error {
			s, err := opened.NewSession(ctx, nil)
			if err != nil {
				return err
			}
			_, err = s.Load(ctx, "long", nil)
			return err
		}),
		count("a search over 500 skills", func() error {
			_, err := rt.Catalog().Search(ctx, "report on depths", catalog.SearchOptions{Limit: 10})
			return err
		}),
		count("the catalog text of 500 skills", func() error {
			rt.CatalogText(4000)
			return nil
		}),
		count("a second scan of 500 unchanged skills", func() error {
			return scanned.Catalog().Reload(ctx)
		}),
	}
}

func open(ctx context.Context, t *testing.T, source catalog.Source) *loadout.Runtime {
	t.Helper()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{source}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}
