package script

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/fileerror"
)

// Needs describes the packages to install before a script runs. An installer
// must not use any of the skill's files except Files, because other files, such
// as pip.conf, .npmrc or setup.py, were not checked.
type Needs struct {
	// Kind selects the installer: "python" (pip, uv) or "node" (npm).
	Kind Kind `json:"kind"`
	// Requirements holds the lines of a requirements file with their hashes,
	// for Python only. They are sorted and can be passed on unchanged.
	// Constraints holds the lines for pip's --constraint.
	Requirements []string `json:"requirements,omitempty"`
	Constraints  []string `json:"constraints,omitempty"`
	// RequireHashes is set if the files require hash checks.
	RequireHashes bool `json:"require_hashes,omitempty"`
	// RequiresPython is the specifier of the supported Python versions, such as
	// ">=3.11".
	RequiresPython string `json:"requires_python,omitempty"`
	// Files lists the paths in the skill that declare the packages, in order of
	// precedence: the script itself, or requirements files, or SKILL.md, or
	// package.json and its lock file.
	Files []string `json:"files"`
	// Source describes the origin to the user, for example "inline metadata of
	// scripts/x.py".
	Source string `json:"source"`
	// Locked is set if a lock file with exact versions exists, for `npm ci`.
	Locked bool `json:"locked,omitempty"`
	// Digest is "sha256:" and a hash of all fields that affect what is
	// installed. Two scripts with the same needs have the same digest. Paths,
	// order, comments and line endings do not affect it.
	Digest string `json:"digest"`
}

// setDigest sets the digest to a hash of the fields and content.
func (n *Needs) setDigest(content ...string) *Needs {
	data, err := json.Marshal([]any{"loadout needs 1", n.Kind, n.Requirements, n.Constraints, n.RequireHashes, n.RequiresPython, n.Locked, content})
	if err != nil {
		panic(err) // strings always marshal
	}
	sum := sha256.Sum256(data)
	n.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return n
}

// pythonNeeds returns the packages that a Python script requires. They come
// from its inline metadata, or else from the nearest requirements.txt in its
// directory or above, or else from declared, which holds the requirements in
// SKILL.md. The returned string is the specifier of the supported Python
// versions. It may be set even if the script requires no packages.
func pythonNeeds(fsys fs.FS, p string, src []byte, how detected, declared []string) (*Needs, string, error) {
	meta, ok, err := parseInline(p, src)
	if err != nil {
		return nil, "", err
	}
	n := &Needs{Kind: Python, Files: []string{p}, Source: "inline metadata of " + p}
	reader := requirementsReader{fsys: fsys}
	switch {
	case ok:
		n.RequiresPython = meta.requires
		for _, d := range meta.dependencies {
			reader.addInline(p, d.line, d.text)
		}
	case len(how.with) > 0:
		n.Source = "first line of " + p
	default:
		file, found, err := nearestFile(fsys, p, "requirements.txt", func(text []byte) bool { return hasRequirements(text) })
		switch {
		case err != nil:
			return nil, "", err
		case found:
			reader.readFile(file, false)
			n.Source, n.Files = file, reader.files
		default:
			n.Source, n.Files = "requirements in SKILL.md", []string{"SKILL.md"}
			for _, d := range declared {
				reader.addInline("SKILL.md", 0, d)
			}
		}
	}
	for _, w := range how.with {
		reader.addInline(p, 1, w)
	}
	if len(reader.problems) > 0 {
		return nil, "", &NeedsError{reader.problems}
	}
	n.Requirements, n.Constraints, n.RequireHashes = sortUnique(reader.requirements), sortUnique(reader.constraints), reader.hashes
	if len(n.Requirements) == 0 {
		return nil, n.RequiresPython, nil
	}
	return n.setDigest(), n.RequiresPython, nil
}

// PythonNeeds returns the packages that a skill declares for any Python code, one
// element for each place: requirements.txt at the top level, SKILL.md, whose
// requirements are in declared, and the Python files at paths with a
// requirements.txt next to them or above.
func PythonNeeds(fsys fs.FS, paths, declared []string) ([]*Needs, error) {
	n, _, err := pythonNeeds(fsys, "main.py", nil, detected{}, nil) // reads requirements.txt
	if err != nil {
		return nil, err
	}
	all := []*Needs{n}
	if n, err = DeclaredPython("SKILL.md", declared); err != nil {
		return nil, err
	}
	all = append(all, n)
	for _, p := range paths {
		if n, err = scriptNeeds(fsys, p); err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return slices.DeleteFunc(all, func(n *Needs) bool { return n == nil }), nil
}

// DeclaredPython returns the needs of a list of requirements. It returns nil if
// the list is empty. source is the origin of the list, for messages.
func DeclaredPython(source string, requirements []string) (*Needs, error) {
	reader := requirementsReader{}
	for _, d := range requirements {
		reader.addInline(source, 0, d)
	}
	if len(reader.problems) > 0 {
		return nil, &NeedsError{reader.problems}
	}
	if len(reader.requirements) == 0 {
		return nil, nil
	}
	n := &Needs{Kind: Python, Requirements: sortUnique(reader.requirements), RequireHashes: reader.hashes, Source: source}
	return n.setDigest(), nil
}

// scriptNeeds returns the needs of the file p without those in SKILL.md. It
// returns nil if p is not a Python script.
func scriptNeeds(fsys fs.FS, p string) (*Needs, error) {
	src, err := readSource(fsys, p)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	how, err := detectInterpreter(p, src[:min(len(src), len(utf8BOM)+maxShebang+1)], 0)
	if err != nil || how.kind != Python {
		return nil, err
	}
	n, requires, err := pythonNeeds(fsys, p, src, how, nil)
	if n == nil && err == nil {
		n = &Needs{RequiresPython: requires, Source: p}
	}
	return n, err
}

// maxMergedBytes is the maximum total length of merged needs.
const maxMergedBytes = 256 << 10

// PythonMerge merges Python needs that are installed together. The zero value is
// empty.
type PythonMerge struct {
	requirements, constraints []string
	versions                  []string // values of RequiresPython
	hashes                    bool     // the requirements have hashes
}

// Add adds needs, which may be nil. It returns an error and adds nothing if only
// some of the requirements have hashes, because installers then reject the
// others, and if there are more than 2000 requirements and constraints, or 256
// KiB of text. It does not find conflicting versions: installing them fails.
func (m *PythonMerge) Add(n *Needs) error {
	if n == nil {
		return nil
	}
	hashes := n.RequireHashes || slices.ContainsFunc(n.Requirements, func(r string) bool { return strings.Contains(r, " --hash=") })
	if len(m.requirements) > 0 && len(n.Requirements) > 0 && hashes != m.hashes {
		return errors.New("requirements with hashes cannot be installed together with others; add hashes to all, or to none")
	}
	with := PythonMerge{
		requirements: sortUnique(slices.Concat(m.requirements, n.Requirements)), constraints: sortUnique(slices.Concat(m.constraints, n.Constraints)),
		versions: m.versions, hashes: m.hashes || hashes,
	}
	if n.RequiresPython != "" {
		with.versions = sortUnique(append(slices.Clone(m.versions), n.RequiresPython))
	}
	size := 0
	for _, line := range slices.Concat(with.requirements, with.constraints, with.versions) {
		size += len(line)
	}
	switch lines := len(with.requirements) + len(with.constraints); {
	case lines > maxRequirements:
		return fmt.Errorf("too many requirements (%d, limit %d); name fewer packages or unload skills", lines, maxRequirements)
	case size > maxMergedBytes:
		return fmt.Errorf("requirements too large (%d bytes, limit %d KiB); name fewer packages or unload skills", size, maxMergedBytes>>10)
	}
	*m = with
	return nil
}

// Needs returns the merged needs, or nil if there are no packages. They have no
// files.
func (m *PythonMerge) Needs() *Needs {
	if len(m.requirements) == 0 {
		return nil
	}
	n := &Needs{Kind: Python, Requirements: m.requirements, Constraints: m.constraints, RequireHashes: m.hashes,
		RequiresPython: strings.Join(m.versions, ","), Source: "active skills and the configuration"}
	return n.setDigest()
}

func sortUnique(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}

// nearestFile returns the nearest file with the given name in the directory of
// p or above. It skips files for which accept returns false.
func nearestFile(fsys fs.FS, p, name string, accept func([]byte) bool) (string, bool, error) {
	for dir := path.Dir(p); ; dir = path.Dir(dir) {
		file := path.Join(dir, name)
		text, err := readSource(fsys, file)
		switch {
		case err == nil && accept(text):
			return file, true, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", false, &NeedsError{[]Problem{{File: file, Code: "missing", Message: "cannot be read: " + fileerror.Cause(err).Error(), Fix: "correct or remove it"}}}
		}
		if dir == "." {
			return "", false, nil
		}
	}
}

// normalizeText removes a byte order mark and carriage returns.
func normalizeText(src []byte) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(src), "\ufeff"), "\r\n", "\n")
}
