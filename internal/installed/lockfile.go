package installed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/remote"
)

// LockfileName is the name of the lockfile in a directory of skills.
const LockfileName = "loadout.lock"

// Limits on a lockfile.
const (
	MaxLockfileBytes = 16 << 20
	MaxSkills        = 10_000
	MaxProblems      = 20 // maximum number of reported problems
	maxText          = 4096
)

const lockVersion = 1

// Lockfile is the content of loadout.lock.
type Lockfile struct {
	Skills map[string]Entry // by directory name
}

// Entry is the record of one installed skill.
type Entry struct {
	From    remote.Location `json:"from"`
	Ref     string          `json:"ref,omitempty"` // full name of the installed branch or tag
	Commit  string          `json:"commit,omitempty"`
	Version string          `json:"skillVersion,omitempty"` // version in the skill
	Digest  string          `json:"digest"`                 // of Files, computed by skill.Manifest.Digest
	Key     string          `json:"key,omitempty"`          // public key of its signature
	// Files maps the paths of the skill's files to their hex SHA-256.
	Files map[string]string `json:"files"`
}

// lockfileJSON is the format of the file.
type lockfileJSON struct {
	Version int              `json:"version"`
	Skills  map[string]Entry `json:"skills"`
}

// Encode returns the lockfile as stored. Equal lockfiles have equal bytes, with
// one line per file and no times, so that version control can merge them.
// Encode returns the error that [ParseLockfile] would return for the result.
func (l *Lockfile) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	skills := l.Skills
	if skills == nil {
		skills = map[string]Entry{}
	}
	if err := enc.Encode(lockfileJSON{lockVersion, skills}); err != nil {
		return nil, fmt.Errorf("write %s: %w", LockfileName, err)
	}
	if _, err := ParseLockfile(b.Bytes()); err != nil {
		return nil, fmt.Errorf("invalid lockfile: %w", err)
	}
	return b.Bytes(), nil
}

// clone returns a deep copy.
func (l *Lockfile) clone() *Lockfile {
	out := &Lockfile{Skills: make(map[string]Entry, len(l.Skills))}
	for name, e := range l.Skills {
		e.Files = maps.Clone(e.Files)
		out.Skills[name] = e
	}
	return out
}

// readLock returns the lockfile in the open directory and its bytes, or an
// empty one if it does not exist. Callers must not modify the result.
func (d *Dir) readLock(root *os.Root) (*Lockfile, []byte, error) {
	return readLockAt(root, LockfileName, d.parse)
}

// parse works like ParseLockfile but reuses the last result for the same bytes,
// because verifying many skills reads the lockfile for each.
func (d *Dir) parse(text []byte) (*Lockfile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parsed != nil && bytes.Equal(text, d.text) {
		return d.parsed, nil
	}
	lock, err := ParseLockfile(text)
	if err == nil {
		d.text, d.parsed = text, lock
	}
	return lock, err
}

func readLockAt(root *os.Root, path string, parse func([]byte) (*Lockfile, error)) (*Lockfile, []byte, error) {
	data, err := readPlain(root, path, MaxLockfileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return &Lockfile{Skills: map[string]Entry{}}, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", LockfileName, err)
	}
	l, err := parse(data)
	return l, data, err
}

// readPlain reads at most one byte more than most from a file below root that
// is not a symlink.
func readPlain(root *os.Root, path string, most int64) ([]byte, error) {
	info, err := root.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would block
		return nil, fmt.Errorf("not a regular file: %s", path)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// ParseLockfile parses a lockfile. If anything in it is invalid, it returns a
// [*LockfileError] with the positions and no lockfile.
func ParseLockfile(data []byte) (*Lockfile, error) {
	whole := func(line int, what string) *LockfileError {
		return &LockfileError{Problems: []LockfileProblem{{Line: line, Message: what}}}
	}
	if len(data) > MaxLockfileBytes {
		return nil, whole(0, fmt.Sprintf("more than %d bytes", MaxLockfileBytes))
	}
	if line := conflictLine(data); line > 0 {
		e := whole(line, "contains conflict markers of git; resolve them, keeping whole skills of one side or the other")
		e.Conflict = true
		return nil, e
	}
	if !utf8.Valid(data) {
		return nil, whole(0, "not UTF-8")
	}
	var head struct{ Version json.RawMessage }
	if err := json.Unmarshal(data, &head); err != nil {
		if se, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, whole(lineAt(data, int(se.Offset)), "not JSON: "+printable.OneLine(se.Error()))
		}
		return nil, whole(0, "not a JSON object")
	}
	switch v := string(head.Version); {
	case v == "":
		return nil, whole(0, "version is missing")
	case v != fmt.Sprint(lockVersion):
		e := whole(0, fmt.Sprintf("unsupported version %s; update loadout", truncate(v)))
		e.Newer = true
		return nil, e
	}
	r := &lockReader{src: data, lock: &Lockfile{Skills: map[string]Entry{}}}
	r.readLockfile()
	if len(r.err.Problems) > 0 {
		return nil, &r.err
	}
	return r.lock, nil
}

// conflictLine returns the line of the first conflict marker of git, or 0. No
// line of a valid lockfile starts like one.
func conflictLine(data []byte) int {
	n := 0
	for line := range bytes.Lines(data) {
		if n++; bytes.HasPrefix(line, []byte("<<<<<<<")) || bytes.HasPrefix(line, []byte(">>>>>>>")) {
			return n
		}
	}
	return 0
}

func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

// truncate shortens an untrusted text for an error.
func truncate(s string) string {
	s = skill.OneLine(s)
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// Names returns the names of the skills, sorted.
func (l *Lockfile) Names() []string { return slices.Sorted(maps.Keys(l.Skills)) }
