package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/bm25"
)

// A found skill, and what its author says people may ask for it, without its name.
type found struct {
	doc     bm25.Doc
	prompts []string
}

// readSkills reads all skills below a directory in lexical order. One that cannot be read as YAML keeps its folder's name.
func readSkills(dir string) ([]found, error) {
	var out []found
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.EqualFold(e.Name(), "SKILL.md") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		out = append(out, found{parse(data, filepath.Base(folder)), prompts(folder)})
		return nil
	})
	return out, err
}

func parse(data []byte, folder string) bm25.Doc {
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	d := bm25.Doc{Name: folder, Body: string(data)}
	head, ok := bytes.CutPrefix(data, []byte("---\n"))
	if !ok {
		return d
	}
	head, body, ok := bytes.Cut(head, []byte("\n---"))
	if !ok {
		return d
	}
	d.Body = string(body)
	var m struct {
		Name, Description any
		Tags              []string
	}
	if err := yaml.Unmarshal(head, &m); err == nil {
		d.Tags = m.Tags
	} else {
		m.Name, m.Description = line(head, "name:"), line(head, "description:")
	}
	if m.Name != nil && m.Name != "" {
		d.Name = fmt.Sprint(m.Name)
	}
	if m.Description != nil {
		d.Description = fmt.Sprint(m.Description)
	}
	return d
}

// line is the value of a key in front matter that is not YAML.
func line(head []byte, key string) string {
	for l := range strings.Lines(string(head)) {
		if v, ok := strings.CutPrefix(l, key); ok {
			return strings.Trim(v, " \"'\n")
		}
	}
	return ""
}

var (
	prompt  = regexp.MustCompile(`(?m)^\s+(?:default_prompt|short_description):\s*(.*)$`)
	opening = regexp.MustCompile(`(?i)^use \$[a-z0-9:-]+,?( to| for)?`)
	named   = regexp.MustCompile(`\$[a-zA-Z0-9:-]+`)
)

func prompts(folder string) []string {
	data, err := os.ReadFile(filepath.Join(folder, "agents", "openai.yaml"))
	if err != nil {
		return nil // most have none
	}
	var out []string
	for _, m := range prompt.FindAllSubmatch(data, -1) {
		q := strings.Trim(string(m[1]), " \"'")
		q = named.ReplaceAllString(opening.ReplaceAllString(q, ""), "")
		if len(strings.Fields(q)) >= 3 {
			out = append(out, q)
		}
	}
	return out
}
