package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/mod/semver"

	"github.com/loadout-dev/loadout/internal/release"
)

// manifests describes a release for package managers.
type manifests struct {
	Tag, Commit string
	Date        time.Time
	BaseURL     string // URL of the archives, without a slash at the end
	Index       string // file with earlier releases, or ""

	archives map[string]release.File // by platform
}

//go:embed templates
var templateFiles embed.FS

// templates lists the files to write, with the template of each. A file is
// omitted if an archive that it needs is missing, as in a release for only some
// systems.
var templates = []struct {
	file, template string
	needs          []string
}{
	{"loadout.rb", "loadout.rb.tmpl", []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64"}},
	{"scoop/loadout.json", "scoop.json.tmpl", []string{"windows/amd64"}},
	{"winget/" + wingetID + ".yaml", "winget.version.yaml.tmpl", []string{"windows/amd64"}},
	{"winget/" + wingetID + ".installer.yaml", "winget.installer.yaml.tmpl", []string{"windows/amd64"}},
	{"winget/" + wingetID + ".locale.en-US.yaml", "winget.locale.yaml.tmpl", []string{"windows/amd64"}},
}

const wingetID = "LoadoutDev.Loadout"

// write writes the manifests and the release index to dir, which contains
// the archives.
func (m *manifests) write(dir string) error {
	if semver.Canonical(m.Tag) != m.Tag || m.Tag == "" {
		return fmt.Errorf("%q is not a tag such as v1.2.0", m.Tag)
	}
	if err := m.readArchives(dir); err != nil {
		return err
	}
	for _, t := range templates {
		if slices.ContainsFunc(t.needs, func(platform string) bool { _, ok := m.archives[platform]; return !ok }) {
			continue
		}
		text, err := m.render(t.template)
		if err != nil {
			return err
		}
		if err := parse(t.file, text); err != nil {
			return fmt.Errorf("parse %s: %w", t.file, err)
		}
		path := filepath.Join(dir, filepath.FromSlash(t.file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return m.writeIndex(filepath.Join(dir, "index.json"))
}

// readArchives finds the archives in dir by their names.
func (m *manifests) readArchives(dir string) error {
	m.archives = map[string]release.File{}
	names, err := filepath.Glob(filepath.Join(dir, "loadout_"+m.Version()+"_*_*.*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		stem, ok := strings.CutSuffix(filepath.Base(name), ".tar.gz")
		if !ok {
			stem, ok = strings.CutSuffix(filepath.Base(name), ".zip")
		}
		if !ok {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		platform := strings.Replace(strings.TrimPrefix(stem, "loadout_"+m.Version()+"_"), "_", "/", 1)
		m.archives[platform] = release.File{Platform: platform, URL: m.BaseURL + "/" + filepath.Base(name),
			Size: int64(len(content)), SHA256: fmt.Sprintf("%x", sha256.Sum256(content))}
	}
	if len(m.archives) == 0 {
		return fmt.Errorf("no archives of version %s in %s", m.Version(), dir)
	}
	return nil
}

func (m *manifests) render(name string) ([]byte, error) {
	t, err := template.ParseFS(templateFiles, "templates/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, m); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Version returns the version without the "v" of the tag.
func (m *manifests) Version() string { return strings.TrimPrefix(m.Tag, "v") }

// Day returns the date as YYYY-MM-DD.
func (m *manifests) Day() string { return m.Date.Format(time.DateOnly) }

// WingetID returns the name of the package in winget.
func (m *manifests) WingetID() string { return wingetID }

// Archive returns the archive for a platform such as "linux/amd64".
func (m *manifests) Archive(platform string) (release.File, error) {
	f, ok := m.archives[platform]
	if !ok {
		return f, fmt.Errorf("no archive for %s", platform)
	}
	return f, nil
}

// Stem returns the name of the directory in an archive.
func (m *manifests) Stem(platform string) string {
	return "loadout_" + m.Version() + "_" + strings.Replace(platform, "/", "_", 1)
}

// parse returns an error if a manifest is not valid in the format that its file
// name implies.
func parse(file string, text []byte) error {
	var v map[string]any
	switch filepath.Ext(file) {
	case ".json":
		return json.Unmarshal(text, &v)
	case ".yaml":
		return yaml.Load(text, &v)
	}
	return nil
}

// writeIndex writes the index of this release and the earlier ones.
func (m *manifests) writeIndex(file string) error {
	x := &release.Index{Format: release.Format}
	if m.Index != "" {
		src, err := os.ReadFile(m.Index)
		if err != nil {
			return err
		}
		if x, err = release.Parse(src); err != nil {
			return fmt.Errorf("%s: %w", m.Index, err)
		}
	}
	for _, r := range x.Releases {
		if r.Version == m.Tag && r.Commit != m.Commit {
			return fmt.Errorf("%s was already released from commit %s", m.Tag, r.Commit)
		}
	}
	x.Releases = slices.DeleteFunc(x.Releases, func(r release.Release) bool { return r.Version == m.Tag })
	r := release.Release{Version: m.Tag, Commit: m.Commit, Date: m.Date, Files: []release.File{}}
	for _, f := range m.archives {
		r.Files = append(r.Files, f)
	}
	slices.SortFunc(r.Files, func(a, b release.File) int { return strings.Compare(a.Platform, b.Platform) })
	x.Releases = append(x.Releases, r)
	slices.SortFunc(x.Releases, func(a, b release.Release) int { return semver.Compare(b.Version, a.Version) })
	text, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err
	}
	if len(text) >= release.MaxSize {
		return errors.New("the index is too large; remove the oldest releases from the file given with -index")
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
