package script

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Needs is what has to be installed before a script runs. Whoever installs it
// uses nothing else of the skill than Files: a pip.conf, .npmrc or setup.py
// beside them is not what was looked at here.
type Needs struct {
	// Kind says what installs it: "python" (pip, uv) or "node" (npm).
	Kind Kind `json:"kind"`
	// Requirements are lines of a requirements file that can be passed on as
	// they are, with their hashes; of Python only, sorted. Constraints are
	// lines for pip's --constraint.
	Requirements []string `json:"requirements,omitempty"`
	Constraints  []string `json:"constraints,omitempty"`
	// RequireHashes says that the files ask for hashes to be checked.
	RequireHashes bool `json:"require_hashes,omitempty"`
	// RequiresPython is the versions of Python that will do, such as ">=3.11".
	RequiresPython string `json:"requires_python,omitempty"`
	// Files are the paths in the skill that say so: the script itself, or
	// requirements files, or package.json and its lock file, which come first
	// in the order in which they count.
	Files []string `json:"files"`
	// Source is what asked, for a person: "inline metadata of scripts/x.py".
	Source string `json:"source"`
	// Locked says that exact versions are in a lock file, for `npm ci`.
	Locked bool `json:"locked,omitempty"`
	// Digest is "sha256:" and the hash of all of the above that decides what is
	// installed, so that the same needs of two scripts have the same digest.
	// Paths, order, comments and line ends do not count.
	Digest string `json:"digest"`
}

// seal fills in the digest; content is what counts besides the fields.
func (n *Needs) seal(content ...string) *Needs {
	data, err := json.Marshal([]any{"loadout needs 1", n.Kind, n.Requirements, n.Constraints, n.RequireHashes, n.RequiresPython, n.Locked, content})
	if err != nil {
		panic(err) // strings marshal
	}
	sum := sha256.Sum256(data)
	n.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return n
}

// pythonNeeds reads what a Python script needs: its inline metadata, else the
// nearest requirements.txt from its directory up. The string is the versions
// of Python that will do, whether or not anything has to be installed.
func pythonNeeds(fsys fs.FS, p string, src []byte, how recognised) (*Needs, string, error) {
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
			reader.inline(p, d.line, d.text)
		}
	case len(how.with) > 0:
		n.Source = "first line of " + p
	default:
		file, found, err := nearest(fsys, p, "requirements.txt", func(text []byte) bool { return asksForSomething(text) })
		if err != nil || !found {
			return nil, "", err
		}
		n.Source, n.Files = file, nil
		reader.file(file, false)
		n.Files = reader.files
	}
	for _, w := range how.with {
		reader.inline(p, 1, w)
	}
	if len(reader.problems) > 0 {
		return nil, "", &NeedsError{reader.problems}
	}
	n.Requirements, n.Constraints, n.RequireHashes = tidy(reader.requirements), tidy(reader.constraints), reader.hashes
	if len(n.Requirements) == 0 {
		return nil, n.RequiresPython, nil
	}
	return n.seal(), n.RequiresPython, nil
}

func tidy(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}

// nearest finds the file of that name that is beside p or above it and counts.
func nearest(fsys fs.FS, p, name string, counts func([]byte) bool) (string, bool, error) {
	for dir := path.Dir(p); ; dir = path.Dir(dir) {
		file := path.Join(dir, name)
		text, err := read(fsys, file)
		switch {
		case err == nil && counts(text):
			return file, true, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", false, &NeedsError{[]Problem{{File: file, Code: "missing", Message: "cannot be read: " + cause(err), Fix: "mend or remove it"}}}
		}
		if dir == "." {
			return "", false, nil
		}
	}
}

// cause is the text of a file error without the path.
func cause(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// plain removes a byte order mark and carriage returns.
func plain(src []byte) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(src), "\ufeff"), "\r\n", "\n")
}
