//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"testing/fstest"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// findSkills returns the skill directories under dir.
func findSkills(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && skillpath.IsSkillFile(d.Name()) {
			out = append(out, filepath.Dir(p))
		}
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("no skills found below %s", dir)
	}
	return out, err
}

func scanSkill(ctx context.Context, dir string) (*scan.Report, error) {
	b, err := skill.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return scan.Skill(ctx, b.FS, b.Folder)
}

func forEach(dirs []string, do func(string) error) error {
	for _, d := range dirs {
		if err := do(d); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}
	return nil
}

// readFiles reads every byte of a skill, which is the minimum work for a scan.
func readFiles(dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buffer)
		return err
	})
}

var buffer = make([]byte, 64<<10)

// openSet opens a labeled set: a directory, or a txtar archive in which \u{HEX} stands for a
// character.
func openSet(name string) (fs.FS, error) {
	if filepath.Ext(name) != ".txtar" {
		return os.DirFS(name), nil
	}
	archive, err := txtar.ParseFile(name)
	if err != nil {
		return nil, fmt.Errorf("read labeled set: %w", err)
	}
	files := fstest.MapFS{}
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: escaped.ReplaceAllFunc(f.Data, func(m []byte) []byte {
			r, _ := strconv.ParseUint(string(m[3:len(m)-1]), 16, 21) // cannot fail, because the pattern matched
			return utf8.AppendRune(nil, rune(r))
		})}
	}
	return files, nil
}

var escaped = lazyregexp.New(`\\u\{[0-9a-f]{1,5}\}`)

// measureRecall counts the attacks for which the scan reports a high-severity
// finding.
func measureRecall(ctx context.Context, name string, list bool) error {
	set, err := openSet(name)
	if err != nil {
		return err
	}
	data, err := fs.ReadFile(set, "manifest.json")
	if err != nil {
		return err
	}
	var manifest struct {
		Entries []struct {
			Path      string `json:"path"`
			Format    string `json:"format"`
			Malicious bool   `json:"is_malicious"`
			Attack    string `json:"attack_type"`
		} `json:"entries"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return fmt.Errorf("read manifest.json: %w", err)
	}
	type score struct{ found, all int }
	by, wrong := map[string]*score{}, 0
	add := func(key string, found bool) {
		s := by[key]
		if s == nil {
			s = &score{}
			by[key] = s
		}
		s.all++
		if found {
			s.found++
		}
	}
	for _, e := range manifest.Entries {
		dir := path.Dir(e.Path)
		files, err := fs.Sub(set, dir)
		if err != nil {
			return err
		}
		r, err := scan.Skill(ctx, files, path.Base(dir))
		if err != nil {
			return err
		}
		w, any := r.Worst()
		found := any && w == scan.High
		if !e.Malicious {
			add("harmless, "+e.Format, found)
			if found {
				wrong++
				printFindings(e.Path, r, scan.High)
			}
			continue
		}
		add("attacks, "+e.Format, found)
		add("attack "+e.Attack, found)
		add("attacks", found)
		if list && !found {
			fmt.Println("  missed:", e.Path)
			printFindings(e.Path, r, scan.Low)
		}
	}
	keys := []string{}
	for k := range by {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	fmt.Println("\n| set | high | of | share |\n| --- | --- | --- | --- |")
	for _, k := range keys {
		fmt.Printf("| %s | %d | %d | %.2f |\n", k, by[k].found, by[k].all, float64(by[k].found)/float64(by[k].all))
	}
	return nil
}
