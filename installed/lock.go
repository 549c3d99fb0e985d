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

	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/skill"
)

// LockFile is the name of the lock in a directory of skills.
const LockFile = "loadout.lock"

// Bounds on a lock.
const (
	MaxLockBytes = 16 << 20
	MaxSkills    = 10_000
	MaxProblems  = 20 // that are told of one
	maxText      = 4096
)

const lockVersion = 1

// Lock is what loadout.lock says.
type Lock struct {
	Skills map[string]Entry // by the name of the skill's directory
}

// Entry is one installed skill.
type Entry struct {
	From    remote.Location `json:"from"`
	Ref     string          `json:"ref,omitempty"` // the branch or tag that was followed, in full
	Commit  string          `json:"commit,omitempty"`
	Version string          `json:"skillVersion,omitempty"` // as the skill has it
	Digest  string          `json:"digest"`                 // of Files, as [skill.Manifest.Digest] makes it
	Key     string          `json:"key,omitempty"`          // that it was signed with
	// Files are the hex SHA-256 of the skill's files by path.
	Files map[string]string `json:"files"`
}

// lockFile is the form of the file.
type lockFile struct {
	Version int              `json:"version"`
	Skills  map[string]Entry `json:"skills"`
}

// Encode writes the lock as it is stored: the same lock has the same bytes, one
// line a file, without times, so that version control can merge it. It fails with
// what [ParseLock] would say of it.
func (l *Lock) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	skills := l.Skills
	if skills == nil {
		skills = map[string]Entry{}
	}
	if err := enc.Encode(lockFile{lockVersion, skills}); err != nil {
		return nil, fmt.Errorf("write %s: %w", LockFile, err)
	}
	if _, err := ParseLock(b.Bytes()); err != nil {
		return nil, fmt.Errorf("write what could not be read again: %w", err)
	}
	return b.Bytes(), nil
}

// clone is a copy that shares nothing with the lock.
func (l *Lock) clone() *Lock {
	out := &Lock{Skills: make(map[string]Entry, len(l.Skills))}
	for name, e := range l.Skills {
		e.Files = maps.Clone(e.Files)
		out.Skills[name] = e
	}
	return out
}

// readLock returns the lock in the open directory and its bytes, nothing where there
// is none. Nobody changes what it returns.
func (d *Dir) readLock(root *os.Root) (*Lock, []byte, error) {
	return readLockAt(root, LockFile, d.parse)
}

// parse is ParseLock, which it calls once for the same bytes in turn: who verifies one
// skill after another reads the lock for each.
func (d *Dir) parse(text []byte) (*Lock, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parsed != nil && bytes.Equal(text, d.text) {
		return d.parsed, nil
	}
	lock, err := ParseLock(text)
	if err == nil {
		d.text, d.parsed = text, lock
	}
	return lock, err
}

func readLockAt(root *os.Root, path string, parse func([]byte) (*Lock, error)) (*Lock, []byte, error) {
	data, err := readPlain(root, path, MaxLockBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return &Lock{Skills: map[string]Entry{}}, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", LockFile, err)
	}
	l, err := parse(data)
	return l, data, err
}

// readPlain reads a file below root that is no link, of one byte more than most
// at most.
func readPlain(root *os.Root, path string, most int64) ([]byte, error) {
	info, err := root.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // before opening: a pipe would wait
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// ParseLock reads a lock. Whatever is wrong with it is a [*LockError] with the
// places: a lock is relied on as a whole or not at all.
func ParseLock(data []byte) (*Lock, error) {
	whole := func(line int, what string) *LockError {
		return &LockError{Problems: []LockProblem{{Line: line, What: what}}}
	}
	if len(data) > MaxLockBytes {
		return nil, whole(0, fmt.Sprintf("it has more than %d bytes", MaxLockBytes))
	}
	if line := conflictLine(data); line > 0 {
		e := whole(line, "it has conflict markers of git; resolve them, keeping whole skills of one side or the other")
		e.Conflict = true
		return nil, e
	}
	if !utf8.Valid(data) {
		return nil, whole(0, "it is not UTF-8")
	}
	var head struct{ Version json.RawMessage }
	if err := json.Unmarshal(data, &head); err != nil {
		if se, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, whole(lineAt(data, int(se.Offset)), "it is not JSON: "+skill.OneLine(se.Error()))
		}
		return nil, whole(0, "it is not a JSON object")
	}
	switch v := string(head.Version); {
	case v == "":
		return nil, whole(0, "it says no version")
	case v != fmt.Sprint(lockVersion):
		e := whole(0, fmt.Sprintf("it has the version %s, which this loadout does not know; update loadout", clip(v)))
		e.Newer = true
		return nil, e
	}
	r := &lockReader{src: data, lock: &Lock{Skills: map[string]Entry{}}}
	r.read()
	if len(r.err.Problems) > 0 {
		return nil, &r.err
	}
	return r.lock, nil
}

// conflictLine is the line of the first mark that git leaves where it could not
// merge, 0 where there is none. No line of a lock begins like that.
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

// clip makes a text of a stranger fit for an error.
func clip(s string) string {
	s = skill.OneLine(s)
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

func (l *Lock) names() []string { return slices.Sorted(maps.Keys(l.Skills)) }
