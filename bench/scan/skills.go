//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/scan"
	"github.com/loadout-dev/loadout/skill"
)

// skillsIn finds the directories of skills below one.
func skillsIn(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && skill.IsFileName(d.Name()) {
			out = append(out, filepath.Dir(p))
		}
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("no skill below %s", dir)
	}
	return out, err
}

func scanDir(ctx context.Context, dir string) (*scan.Report, error) {
	b, err := skill.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return scan.Skill(ctx, b.FS, b.Folder)
}

func each(dirs []string, do func(string) error) error {
	for _, d := range dirs {
		if err := do(d); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}
	return nil
}

// readFiles is the least that looking at every byte costs.
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

// recall counts the attacks that are found at the highest severity.
func recall(ctx context.Context, dir string, list bool) error {
	data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
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
		return fmt.Errorf("read the labels: %w", err)
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
		r, err := scanDir(ctx, filepath.Dir(filepath.Join(dir, e.Path)))
		if err != nil {
			return err
		}
		w, any := r.Worst()
		found := any && w == scan.High
		if !e.Malicious {
			add("harmless, "+e.Format, found)
			if found {
				wrong++
				show(e.Path, r, scan.High)
			}
			continue
		}
		add("attacks, "+e.Format, found)
		add("attack "+strings.Replace(e.Attack, "A", "A0", 1)[:1]+fmt.Sprintf("%02s", e.Attack[1:]), found)
		add("attacks", found)
		if list && !found {
			fmt.Println("  not found:", e.Path)
			show(e.Path, r, scan.Low)
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
